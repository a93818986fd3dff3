"""Decide for which due nominal times a tick enqueues runs, and why it skips the others."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from rowcall.base.durations import duration_words
from rowcall.schedule.times import Times
from rowcall.schedule.zones import SECOND


class CatchUp(StrEnum):
    """What happens to nominal times that were missed in an outage."""

    SKIP = "skip"  # none of them runs
    LATEST = "latest"  # the last of them runs
    ALL = "all"  # all of them run


class Overlap(StrEnum):
    """Whether a nominal time is enqueued while an earlier run of the definition is unfinished."""

    ALLOW = "allow"
    SKIP = "skip"


class Outcome(StrEnum):
    """The decision about a nominal time."""

    ENQUEUED = "enqueued"
    SKIPPED = "skipped"  # paused, or another run is unfinished or holds the natural key
    MISSED = "missed"  # decided too late, or the job type refused the payload


@dataclass(frozen=True)
class Rule:
    """A definition's rules for its nominal times."""

    times: Times
    catch_up: CatchUp = CatchUp.LATEST
    max_lateness: timedelta | None = None
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)
    name: str = ""
    paused: bool = False


@dataclass(frozen=True)
class Decision:
    """One nominal time and its outcome; `run_at` is set if a run is enqueued."""

    nominal: datetime
    outcome: Outcome
    reason: str | None
    run_at: datetime | None


@dataclass(frozen=True)
class Decided:
    """The decisions of one tick, and the first nominal time left for the next tick, or None."""

    decisions: list[Decision]
    next_at: datetime | None


def decide(
    rule: Rule, first: datetime, now: datetime, *, punctual: timedelta, bound: int, live: int | None = None
) -> Decided:
    """Decide the nominal times from `first`, which is a nominal time, to now, at most `bound` of them.

    A tick is never exactly on time, so a delay up to `punctual` does not count as an outage.  `live` is the id of an
    unfinished run of this definition, or None.
    """
    newest = rule.times.last_between(first, now) or first
    unfinished = None if live is None else f"run {live}"
    decisions: list[Decision] = []
    for nominal in itertools.chain([first], rule.times.after(first)):
        if nominal > now or len(decisions) >= bound:
            return Decided(decisions, nominal)
        decision = _decision(rule, nominal, newest, now - nominal, punctual, unfinished)
        if decision.outcome is Outcome.ENQUEUED:
            unfinished = f"the run for {_told(rule, nominal)}"
        decisions.append(decision)
    return Decided(decisions, None)


def asleep(rule: Rule, start: datetime, end: datetime, *, punctual: timedelta, bound: int) -> list[Decision]:
    """Return what a tick at `end` would decide if there had been none since `start`."""
    first = rule.times.next_after(start)
    return [] if first is None else decide(rule, first, end, punctual=punctual, bound=bound).decisions


def _decision(
    rule: Rule, nominal: datetime, newest: datetime, late: timedelta, punctual: timedelta, unfinished: str | None
) -> Decision:
    if rule.paused:
        return Decision(nominal, Outcome.SKIPPED, "paused", None)
    missed = _why_missed(rule, nominal, newest, late, punctual)
    if missed:
        return Decision(nominal, Outcome.MISSED, missed, None)
    if rule.overlap is Overlap.SKIP and unfinished:
        return Decision(nominal, Outcome.SKIPPED, f"{unfinished} is not finished yet (overlap skip)", None)
    reason = f"{_late(late)} late" if late > punctual else None
    return Decision(nominal, Outcome.ENQUEUED, reason, nominal + _offset(rule))


def _why_missed(rule: Rule, nominal: datetime, newest: datetime, late: timedelta, punctual: timedelta) -> str | None:
    if rule.max_lateness is not None and late > rule.max_lateness:
        return f"{_late(late)} late, and max_lateness is {duration_words(rule.max_lateness)}"
    if rule.catch_up is CatchUp.SKIP and late > punctual:
        return "no worker enqueued it in time (catch_up skip)"
    if rule.catch_up is CatchUp.LATEST and nominal < newest:
        return f"superseded by the nominal time {_told(rule, newest)} (catch_up latest)"
    return None


def _late(late: timedelta) -> str:
    """Format the lateness in whole seconds, rounded up, so that a lateness above a limit never reads as the limit."""
    return duration_words(-(-late // SECOND) * SECOND)


def _told(rule: Rule, nominal: datetime) -> str:
    """Format a nominal time for people, in the zone of the schedule."""
    return nominal.astimezone(rule.times.zone).isoformat(sep=" ", timespec="minutes")


def _offset(rule: Rule) -> timedelta:
    """Return the share of the jitter for this definition.  It never changes, so the runs stay evenly spaced."""
    share = int.from_bytes(hashlib.sha256(rule.name.encode()).digest()[:8])
    return (share * (rule.jitter // SECOND + 1) >> 64) * SECOND
