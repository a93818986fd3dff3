"""Check the alerts as a worker does, and move what they look at into the past."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rowcall.alerts import Watch
from rowcall.alerts.conditions import Limits
from rowcall.alerts.intervals import Interval
from rowcall.alerts.watch import refused
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.receivers import Receiver
from rowcall.job_types import Catalogue, JobType, catalogue
from rowcall.status import Event, Status
from tests.support.rows import run_in

OPS = Receiver.parse("ops@example.com")
CHAT = Receiver.parse("https://chat.example.com/hooks/a1b2c3")

LIMITS = Limits(due=900, silence=150)

# A check every thirty seconds, and an end after five minutes of calm: these moments are over.
LATER = """
UPDATE rowcall.alert_checks SET checked_at = checked_at - %(past)s::interval;
UPDATE rowcall.incidents SET opened_at = opened_at - %(past)s::interval, seen_at = seen_at - %(past)s::interval
WHERE ended_at IS NULL
"""


def pass_time(connection: PgConnection, past: str) -> None:
    """Move the last check and the open incidents into the past."""
    fetch_all(connection, LATER, {"past": past})


def check(
    connection: PgConnection, receivers: Sequence[Receiver] = (OPS,), types: Catalogue | None = None
) -> list[dict[str, Any]]:
    """Check the alerts, and return what was enqueued for the receivers: the payloads of the new messages."""
    before = {row["id"] for row in messages(connection)}
    watch(receivers, types).check(connection)
    return [row["payload"] for row in messages(connection) if row["id"] not in before]


def watch(receivers: Sequence[Receiver] = (OPS,), types: Catalogue | None = None, limits: Limits = LIMITS) -> Watch:
    """Return a watch that checks each time it is asked."""
    return Watch(types or catalogue(), receivers, limits, Interval(0, refused))


def messages(connection: PgConnection) -> list[Row]:
    """Return the runs that tell receivers."""
    return fetch_all(connection, "SELECT * FROM rowcall.job_runs WHERE job_type = 'send_incidents' ORDER BY id")


def open_now(connection: PgConnection) -> list[tuple[str, str]]:
    """Return alert and subject of each open incident."""
    rows = fetch_all(connection, "SELECT alert, subject FROM rowcall.incidents WHERE ended_at IS NULL ORDER BY id")
    return [(row["alert"], row["subject"]) for row in rows]


def die(connection: PgConnection, job_type: str = "noop", ago: str = "0 s", error: str = "no such customer") -> int:
    """Insert a run that died some time ago, with the history of its last attempt."""
    run = run_in(connection, Status.DEAD, job_type=f"'{job_type}'", last_error=f"'{error}'", error_type="'LookupError'")
    fetch_all(
        connection,
        "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)"
        f" VALUES (%(id)s, 3, 2, '{Event.GIVE_UP}', 'w', now() - %(ago)s::interval)",
        {"id": run["id"], "ago": ago},
    )
    found: int = run["id"]
    return found


def known(*types: JobType) -> Catalogue:
    """Return a catalogue with these types besides Rowcall's own."""
    module = ModuleType("a_module_of_these_tests")
    vars(module).update({kind.name: kind for kind in (*catalogue().values(), *types)})
    return Catalogue(module)
