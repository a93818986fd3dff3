"""Preview: what a schedule would do, decided by the same function as in a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from rowcall.definitions.content import Content
from rowcall.definitions.tick import PUNCTUAL
from rowcall.schedule import Decision, Outcome, Rule, asleep, decide

# The limit of nominal times in one preview.
SHOWN_MOST = 1000


class Previewed(NamedTuple):
    """A definition to preview: its rules, and whether it is paused now."""

    name: str
    content: Content
    paused: bool = False


@dataclass(frozen=True)
class Shown:
    """One nominal time of a definition, with its outcome and the local time in its zone."""

    name: str
    nominal_at: datetime
    wall: str
    outcome: Outcome
    run_at: datetime | None
    note: str | None


def coming(definition: Previewed, start: datetime, count: int) -> list[Shown]:
    """Return the next nominal times after `start`, with the decisions that a running worker would make."""
    times = definition.content.times()
    nominals = islice(times.after(start), min(count, SHOWN_MOST)) if times else ()
    return [_in_time(definition, nominal) for nominal in nominals]


def between(definitions: Sequence[Previewed], start: datetime, end: datetime) -> list[Shown]:
    """Return the nominal times of these definitions between two moments, in order."""
    shown = []
    for definition in definitions:
        times = definition.content.times()
        nominals = islice(times.between(start, end), SHOWN_MOST) if times else ()
        shown += [_in_time(definition, nominal) for nominal in nominals]
    return sorted(shown, key=lambda one: (one.nominal_at, one.name))[:SHOWN_MOST]


def through_outage(definitions: Sequence[Previewed], start: datetime, end: datetime) -> list[Shown]:
    """Return what the first tick at `end` would decide if no worker had ticked since `start`."""
    shown = []
    for definition in definitions:
        rule = _rule(definition)
        decisions = asleep(rule, start, end, punctual=PUNCTUAL, bound=SHOWN_MOST) if rule else []
        shown += [_shown(definition, decision) for decision in decisions]
    return sorted(shown, key=lambda one: (one.nominal_at, one.name))[:SHOWN_MOST]


def _in_time(definition: Previewed, nominal: datetime) -> Shown:
    rule = _rule(definition)
    assert rule is not None, "it has nominal times"
    decided = decide(rule, nominal, nominal, punctual=PUNCTUAL, bound=1)
    return _shown(definition, decided.decisions[0])


def _rule(definition: Previewed) -> Rule | None:
    return definition.content.rule(definition.name, definition.paused)


def _shown(definition: Previewed, decision: Decision) -> Shown:
    times = definition.content.times()
    assert times is not None, "it has nominal times"
    wall = decision.nominal.astimezone(definition.content.zone)
    notes = [note for note in (times.note(decision.nominal), decision.reason) if note]
    return Shown(
        definition.name,
        decision.nominal,
        f"{wall:%a} {wall.date().isoformat()} {wall:%H:%M %Z}",  # %Y does not pad a year to four digits
        decision.outcome,
        decision.run_at,
        "; ".join(notes) or None,
    )
