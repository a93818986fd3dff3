"""The overview's first sentence, from the figures of a database in each state that an operator can meet."""

from __future__ import annotations

from collections.abc import Iterator

import flask
import pytest

from rowcall import definitions, queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import catalogue
from rowcall.status import Event, Status
from rowcall_api.page.headline import Finding, findings, headline, late_run
from rowcall_api.stats import read_figures
from tests.support.failures import failed
from tests.support.rows import run_in

MAKER = Operator("tests")

WORKER = """
INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency, heartbeat_seconds)
VALUES (%(id)s, 'web-1', 7, '1.2', '{noop}', 4, 30)
"""

UNKNOWN = """
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)
SELECT 'mail:' || number, 1, 1, '', 'unknown' FROM generate_series(1, %(number)s) AS number
"""

TICK = "UPDATE rowcall.schedule_ticks SET ticked_at = now() - %(age)s::interval, worker = 'web-1'"

OVERDUE = "UPDATE rowcall.job_definitions SET next_run_at = now() - interval '1 hour'"


@pytest.fixture(autouse=True)
def request_context(app: flask.Flask) -> Iterator[None]:
    """Let the findings have addresses."""
    with app.test_request_context("/admin"):
        yield


@pytest.fixture
def working(connection: PgConnection) -> PgConnection:
    """Return the connection to a database with one worker, which has just ticked."""
    # The migration's own definitions come due in real time, while this file's tests run.
    fetch_all(connection, "DELETE FROM rowcall.job_definitions")
    fetch_all(connection, WORKER, {"id": "web-1"})
    fetch_all(connection, TICK, {"age": "1 second"})
    return connection


def told(connection: PgConnection) -> list[Finding]:
    """Return the headline and what else is found."""
    stats = read_figures(connection)
    found = findings(stats, late_run(connection, stats["queues"]))
    first = headline(stats, found)
    assert not found or first is found[0]
    return found or [first]


def sentences(connection: PgConnection) -> list[str]:
    return [one.sentence for one in told(connection)]


def late(connection: PgConnection, runs: int, job_type: str = "noop", in_queue: str = "default") -> None:
    for number in range(runs):
        run_at = f"now() - interval '14 minutes' + {number} * interval '1 second'"
        run_in(connection, Status.QUEUED, run_at=run_at, job_type=f"'{job_type}'", queue=f"'{in_queue}'")


def scheduled(connection: PgConnection, name: str) -> None:
    content = definitions.checked(name, {"job_type": "noop", "schedule": "@daily"}, catalogue())
    definitions.put(connection, name, content, catalogue(), "api", MAKER)


def test_all_is_well(working: PgConnection) -> None:
    assert told(working) == [Finding("good", "All is well: nothing is late; 1 worker is alive.", "/admin/workers")]
    fetch_all(working, WORKER, {"id": "web-2"})
    assert sentences(working) == ["All is well: nothing is late; 2 workers are alive."]


def test_all_is_well_between_two_workers_of_cron(working: PgConnection) -> None:
    fetch_all(working, "UPDATE rowcall.workers SET stopped_at = now()")
    assert sentences(working) == ["All is well: nothing is late; no worker is alive at the moment."]


@pytest.mark.parametrize(("failures", "words"), [(1, "1 attempt"), (2, "2 attempts")])
def test_failures_that_recovered_are_mentioned(working: PgConnection, failures: int, words: str) -> None:
    for _ in range(failures):
        failed(working, status=Status.SUCCEEDED)
    assert told(working) == [
        Finding(
            "good",
            f"All is well: nothing is late; 1 worker is alive; {words} failed in the last hour.",
            "/admin/failures",
        )
    ]


def test_a_run_that_was_due_a_minute_ago_is_not_late(working: PgConnection) -> None:
    run_in(working, Status.QUEUED, run_at="now() - interval '1 minute'")
    assert sentences(working) == ["All is well: nothing is late; 1 worker is alive."]


def test_late_runs_say_why(working: PgConnection) -> None:
    late(working, 1, "send_weekly_report", "reports")
    assert sentences(working)[0].startswith(
        "1 run of send_weekly_report is 14 min late: no live worker takes send_weekly_report from queue reports: "
    )
    late(working, 2, "send_weekly_report", "reports")
    [finding] = told(working)
    assert finding.sentence.startswith("3 runs of send_weekly_report are up to 14 min late: no live worker takes")
    assert (finding.state, finding.href.startswith("/admin/runs/")) == ("bad", True)


def test_runs_that_a_pause_holds_up_are_told_once(working: PgConnection) -> None:
    queue.pause_queue(working, "default", MAKER)
    late(working, 2)
    [sentence] = sentences(working)
    assert sentence.startswith("2 runs of noop are up to 14 min late: queue default has been paused since")


def test_without_a_live_worker_due_runs_are_noticed_before_they_are_late(working: PgConnection) -> None:
    fetch_all(working, "DELETE FROM rowcall.workers")
    run_in(working, Status.QUEUED)
    assert sentences(working) == ["Runs are due, and no worker is alive."]


@pytest.mark.parametrize(
    ("number", "words"), [(1, "1 effect with an unknown outcome waits"), (2, "2 effects with an unknown outcome wait")]
)
def test_unknown_effects_come_first(working: PgConnection, number: int, words: str) -> None:
    fetch_all(working, UNKNOWN, {"number": number})
    late(working, 1)
    first = told(working)[0]
    assert first == Finding(
        "bad", f"{words} for you: find out what happened, and record it.", "/admin/effects?state=unknown"
    )


@pytest.mark.parametrize(("number", "words"), [(1, "1 run died"), (2, "2 runs died")])
def test_dead_runs(working: PgConnection, number: int, words: str) -> None:
    for _ in range(number):
        failed(working, status=Status.DEAD, outcome=Event.GIVE_UP)
    them = "it" if number == 1 else "them"
    assert sentences(working) == [f"{words} in the last day: see why, and retry {them}."]


def test_a_silent_tick(working: PgConnection) -> None:
    scheduled(working, "nightly")
    fetch_all(working, TICK, {"age": "20 minutes"})
    assert sentences(working) == ["No nominal time has been processed for 20 min: no worker is ticking."]
    fetch_all(working, OVERDUE)
    assert sentences(working) == [
        "No nominal time has been processed for 20 min: no worker is ticking, and 1 definition is overdue."
    ]


def test_a_tick_that_never_was(working: PgConnection) -> None:
    scheduled(working, "nightly")
    fetch_all(working, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour', worker = NULL")
    assert sentences(working) == ["No nominal time has been processed yet: no worker has ever ticked."]


@pytest.mark.parametrize(("names", "words"), [(["a"], "1 definition is"), (["a", "b"], "2 definitions are")])
def test_overdue_definitions(working: PgConnection, names: list[str], words: str) -> None:
    for name in names:
        scheduled(working, name)
    fetch_all(working, OVERDUE)
    assert told(working) == [Finding("bad", f"{words} overdue: see why.", "/admin/definitions")]


def test_what_is_paused(working: PgConnection) -> None:
    scheduled(working, "nightly")
    definitions.pause(working, "nightly", catalogue(), MAKER)
    queue.pause_queue(working, "mail", MAKER)
    queue.limit_queue(working, "reports", 0, MAKER)
    run_in(working, Status.QUEUED, queue="'mail'")
    assert told(working) == [
        Finding("warn", "The queue mail is paused, and 1 run is due in it.", "/admin/queues/mail"),
        Finding("warn", "The queue reports has a limit of 0.", "/admin/queues/reports"),
        Finding("warn", "1 definition is paused.", "/admin/definitions"),
    ]


def test_a_count_that_stopped_at_its_limit_says_so(working: PgConnection) -> None:
    fetch_all(working, UNKNOWN, {"number": 1200})
    assert sentences(working)[0].startswith("1,000+ effects with an unknown outcome wait")
