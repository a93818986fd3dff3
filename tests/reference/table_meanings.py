"""What each table has."""

from __future__ import annotations

TABLES = {
    "job_definitions": "Definitions: job types with a payload and a schedule.",
    "job_runs": "What should run, and what happened.",
    "job_attempts": "The attempts that did not succeed; a success is recorded only in `job_runs`.",
    "request_keys": "Idempotency keys of requests that were answered with an existing run, or whose run may release its"
    " natural key.",
    "archived_runs": "Pruned runs with their attempts and logs, if the policy of `prune_runs` says so: one partition"
    " for each month.",
    "run_logs": "What handlers logged with `run.log`: the newest lines of each run.",
    "failure_counts": "Failed attempts, counted by minute, job type, queue and error.",
    "run_counts": "How attempts ended, how long their runs waited and how long handlers ran, by minute, job type and"
    " worker.",
    "incidents": "The periods in which an alert was active.",
    "alert_checks": "When the workers of each app last checked the alerts.",
    "pings": "The last pings sent to external services.",
    "schedule_occurrences": "The outcome of each nominal time that has come.",
    "schedule_ticks": "One row: the last tick.",
    "worker_versions": "The versions of Rowcall whose workers have started.",
    "workers": "Worker processes: what they serve, and their last heartbeat.",
    "queues": "Queues that an operator has created, paused or limited, or whose job type has a limit.",
    "operations": "An operator's changes to many runs, which workers carry out.",
    "operation_refusals": "The runs that an operation refused to change, at most 10,000 per operation.",
    "api_keys": "Keys of the HTTP API; only a hash of each secret is stored.",
    "page_sessions": "Sessions and one-time links of the operator's page; only a hash of each token is stored.",
    "page_views": "Views that operators have saved on the page: named filters of the list of runs.",
    "audit_log": "Who changed what. Rows are only added; `rowcall erase` can remove payloads and refusals from them.",
    "sent_emails": "Effects: emails. Policy `at_most_once`.",
    "sent_reports": "Effects: weekly reports. Policy `with_the_run`.",
    "payments": "Effects: charges. Policy `provider_key`.",
    "delivered_webhooks": "Effects: webhooks. Policy `at_least_once`.",
    "generated_files": "Effects: files. Policy `at_least_once`.",
    "other_effects": "Effects of the kinds that an app declares with `EffectKind`.",
}
