"""What happened to a run, as a list of entries in chronological order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowcall.base.database import Row
from rowcall.base.errors import NotHandedOver
from rowcall.queue.claims.handover import GIVEN_BACK
from rowcall.queue.claims.holders import counts, is_lost, is_unbegun, task_words
from rowcall.status import Event, Status

RETRIED = "Retried, which restarted the count of attempts"

# How an attempt ended -> the colour of its entry, and the end of a sentence that begins with the attempt's number.
OUTCOMES: dict[str, tuple[str, str]] = {
    Event.FAIL: ("failed", "failed"),
    Event.GIVE_UP: ("dead", "failed for good"),
    Event.RELEASE: ("queued", "was released by its worker, which stopped"),
    Event.SNOOZE: ("queued", "was snoozed by its handler"),
    Event.EXPIRE: ("failed", "lost its worker: the lease expired"),
    Event.CANCELLED: ("cancelled", "stopped, because the run was cancelled"),
    Event.FORCE_CANCEL: ("cancelled", "was cancelled by force"),
}


# The same for an attempt that was put off, but not by its handler: its type of error -> the end of the sentence.
PUT_OFF = {NotHandedOver.__name__: "could not be handed over", GIVEN_BACK: "was given back"}


@dataclass(frozen=True)
class Entry:
    """One attempt, or what comes before or after the attempts."""

    state: str
    title: str
    at: datetime | None
    # What follows the time: who had the run.
    by: str | None = None
    seconds: float | None = None
    error_type: str | None = None
    error: str | None = None
    stack: str | None = None
    forensics: dict[str, Any] | None = None

    @property
    def first_line(self) -> str:
        """Return the first line of the error."""
        return (self.error or "").partition("\n")[0]


def timeline(run: Row, attempts: Sequence[Row], now: datetime, whole: bool = True) -> list[Entry]:
    """Return the entries of a run, the oldest first; `attempts` are those that did not succeed, the newest first.

    Unless they are the `whole` list, nothing is said about what came before or after them.
    """
    ended = list(_attempted(run, attempts[::-1], whole))
    return [_created(run), *ended, *_present(run, now)] if whole else ended


def _attempted(run: Row, attempts: Sequence[Row], whole: bool) -> Iterator[Entry]:
    """Yield the attempts, and a retry wherever the number of the next attempt is lower than it would be without one."""
    current = run["attempts"] + (run["status"] not in (Status.RUNNING, Status.SUCCEEDED))
    following = [*(attempt["attempt"] for attempt in attempts[1:]), current if whole else None]
    for attempt, number in zip(attempts, following, strict=False):
        yield _ended(attempt)
        if number is not None and number < attempt["attempt"] + counts(attempt):
            yield Entry(Status.QUEUED, RETRIED, None)


def _created(run: Row) -> Entry:
    return Entry("queued", f"Enqueued by {run['created_by'] or 'an app'}", run["created_at"])


def _ended(attempt: Row) -> Entry:
    state, words = OUTCOMES[attempt["outcome"]]
    if attempt["outcome"] == Event.SNOOZE:
        words = PUT_OFF.get(attempt["error_type"], words)
    title, worker = f"Attempt {attempt['attempt']} {words}", attempt["worker"]
    if is_lost(attempt):
        state = "queued"
        title = f"The message of attempt {attempt['attempt']} for {task_words(worker)} was given up"
    return Entry(
        state,
        title,
        attempt["ended_at"],
        None if is_unbegun(worker) else f"by {worker}",
        _seconds(attempt["started_at"], attempt["ended_at"]),
        attempt["error_type"],
        attempt["error"],
        attempt["stack"],
        attempt["forensics"],
    )


def _present(run: Row, now: datetime) -> Iterator[Entry]:
    """Yield what the run does now, or how it ended, unless the entry of the last attempt says so."""
    status, number = Status(run["status"]), run["attempts"]
    if status is Status.RUNNING and is_unbegun(run["locked_by"]):
        title = f"Attempt {number} was handed over to {task_words(run['locked_by'])}"
        yield Entry(status, title, run["started_at"], "and waits for a consumer")
    elif status is Status.RUNNING:
        yield Entry(status, f"Attempt {number} began", run["started_at"], f"and is running on {run['locked_by']}")
    elif status is Status.SUCCEEDED:
        length = _seconds(run["started_at"], run["finished_at"])
        yield Entry(status, f"Attempt {number} succeeded", run["finished_at"], None, length)
    elif status is Status.CANCELLED:
        yield Entry(status, "The run is cancelled", run["finished_at"])
    elif status in (Status.QUEUED, Status.FAILED):
        yield Entry(Status.QUEUED, f"Attempt {number + 1} of {run['max_attempts']} is due", run["run_at"])


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else max((end - begin).total_seconds(), 0.0)
