"""Preview: what a schedule would do, decided by the same function as in a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from rowcall.definitions.content import Content
from rowcall.definitions.tick import PUNCTUAL
from rowcall.schedule import Decision, Outcome, asleep, decide

# The limit of nominal times in one preview.
SHOWN_MOST = 1000


@dataclass(frozen=True)
class Shown:
    """One nominal time of a definition, with its outcome and the local time in its zone."""

    name: str
    nominal_at: datetime
    wall: str
    outcome: Outcome
    run_at: datetime | None
    note: str | None


def coming(name: str, content: Content, start: datetime, count: int) -> list[Shown]:
    """Return the next nominal times after `start`, with the decisions that a running worker would make."""
    times = content.times()
    nominals = list(islice(times.after(start), min(count, SHOWN_MOST))) if times else []
    return [_in_time(name, content, nominal) for nominal in nominals]


def between(contents: Sequence[tuple[str, Content]], start: datetime, end: datetime) -> list[Shown]:
    """Return the nominal times of these definitions between two moments, in order."""
    shown = []
    for name, content in contents:
        times = content.times()
        nominals = islice(times.between(start, end), SHOWN_MOST) if times else ()
        shown += [_in_time(name, content, nominal) for nominal in nominals]
    return sorted(shown, key=lambda one: (one.nominal_at, one.name))[:SHOWN_MOST]


def through_outage(contents: Sequence[tuple[str, Content]], start: datetime, end: datetime) -> list[Shown]:
    """Return what the first tick at `end` would decide if no worker had ticked since `start`."""
    shown = []
    for name, content in contents:
        rule = content.rule(name, paused=False)
        decisions = asleep(rule, start, end, punctual=PUNCTUAL, bound=SHOWN_MOST) if rule else []
        shown += [_shown(name, content, decision) for decision in decisions]
    return sorted(shown, key=lambda one: (one.nominal_at, one.name))[:SHOWN_MOST]


def _in_time(name: str, content: Content, nominal: datetime) -> Shown:
    rule = content.rule(name, paused=False)
    assert rule is not None, "it has nominal times"
    decided = decide(rule, nominal, nominal, punctual=PUNCTUAL, bound=1)
    return _shown(name, content, decided.decisions[0])


def _shown(name: str, content: Content, decision: Decision) -> Shown:
    times = content.times()
    assert times is not None, "it has nominal times"
    wall = decision.nominal.astimezone(content.zone)
    notes = [note for note in (times.note(decision.nominal), decision.reason) if note]
    return Shown(
        name,
        decision.nominal,
        wall.strftime("%a %Y-%m-%d %H:%M %Z"),
        decision.outcome,
        decision.run_at,
        "; ".join(notes) or None,
    )
