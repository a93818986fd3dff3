"""The steps of the ten tasks on the pages of other queues, as their source has them: nobody has clicked through them.

Each list is the shortest way from the first screen; "type ..." is a field, everything else a click, and NO_WAY means
that the screens cannot do it.  To count again, read these files in a newer version, and change the table in
docs/page.md, which a test compares.

River UI (github.com/riverqueue/riverui, src/, files of 2025, v0.12 and later; v0.23.0 of 2026-11-23 is newer):
routes/jobs/index.tsx at 71032b9 (first screen: running jobs; a list has at most 200), components/JobList.tsx at
04281b1, JobDetail.tsx at ef0e907, JobAttempts.tsx at 2430a38 (the stack is folded), QueueList.tsx at 5fa8d7b,
PeriodicJobsPage.tsx at ba48132 (it has no buttons), job-search/types.ts at 54acc99 (its filters).  The issues 383
(filter by args) and 590 (act on all jobs of a view, of June 2026) were open.

Oban Web (github.com/oban-bg/oban_web, lib/oban/web/, v2.13.0 of 2026-09-15, and its CHANGELOG):
live/jobs/sidebar_component.ex (first screen: executing jobs; paused queues have an icon, each queue a link),
live/jobs/detail_component.ex (errors and stacks are open), queries/job_query.ex (what can be searched, always in one
state; the newest first), and the detail_component.ex of live/queues and live/crons (only crons of Pro can be paused).

GoodJob (github.com/bensheldon/good_job, v4; the newest versions that we could read): app/views/good_job/
jobs/_table.erb at 0328d67, jobs/show.html.erb at 07d845a, shared/_navbar.erb at 09030b9, shared/_filter.erb at 6583736
(it searches errors, too), pauses/index.html.erb at 464bad4 (it needs `enable_pauses`); app/controllers/good_job/
jobs_controller.rb at 0e3d094 (a retry of many skips jobs that are not discarded); app/filters/good_job/jobs_filter.rb
(the newest first); pull request 1328 (the stack is open); spec/system/cron_entries_spec.rb at 6040bc7.
"""

from __future__ import annotations

from collections.abc import Sequence

Steps = Sequence[str] | None

NO_WAY = None

# In the order of the table's columns.
OTHER_PAGES: dict[str, dict[str, Steps]] = {
    "River UI": {
        "See why runs are waiting: their queue is paused": ["Queues"],
        "Find the run about an invoice by its payload": NO_WAY,
        "Read the error and the stack of the newest failure": ["Discarded", "the first job", "Stack Trace"],
        "Retry a dead run": ["Discarded", "the job", "Retry"],
        "Retry all runs that died of one error": NO_WAY,
        "Cancel a waiting run": ["Available", "the job", "Cancel"],
        "Pause a schedule": NO_WAY,
        "Run a schedule's job now": NO_WAY,
        "Pause a queue": ["Queues", "Pause"],
        "Find out whether a customer was mailed": NO_WAY,
    },
    "Oban Web": {
        "See why runs are waiting: their queue is paused": [],
        "Find the run about an invoice by its payload": [
            "type args.invoice_id:4711",
            "Enter",
            "the state that the job has",
            "the job",
        ],
        "Read the error and the stack of the newest failure": ["discarded", "the first job"],
        "Retry a dead run": ["discarded", "the job", "Retry"],
        "Retry all runs that died of one error": NO_WAY,
        "Cancel a waiting run": ["available", "the job", "Cancel"],
        "Pause a schedule": ["Crons", "the cron", "Pause"],
        "Run a schedule's job now": ["Crons", "the cron", "Run Now"],
        "Pause a queue": ["Queue details, in the sidebar", "Pause"],
        "Find out whether a customer was mailed": NO_WAY,
    },
    "GoodJob": {
        "See why runs are waiting: their queue is paused": ["Pauses"],
        "Find the run about an invoice by its payload": ["type 4711", "Search", "the job"],
        "Read the error and the stack of the newest failure": ["Discarded", "the first job"],
        "Retry a dead run": ["Discarded", "the job", "Retry job", "OK"],
        "Retry all runs that died of one error": ["type HTTPError", "Search", "Toggle all jobs", "Retry all", "OK"],
        "Cancel a waiting run": ["Queued", "the job", "Discard job", "OK"],
        "Pause a schedule": ["Cron", "Disable cron entry", "OK"],
        "Run a schedule's job now": ["Cron", "Enqueue cron entry now", "OK"],
        "Pause a queue": ["Pauses", "type the queue's name", "Pause"],
        "Find out whether a customer was mailed": NO_WAY,
    },
}
