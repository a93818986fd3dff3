"""Anyone enqueues runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.base.errors import KeyConflict, NaturalKeyConflict
from rowcall.job_types.builtin import NOOP
from rowcall.queue import Enqueued
from rowcall.status import Event, Status
from tests.queue.model.run import Run
from tests.queue.model.world import World

OPERATOR = "operator"


# A job type that allows one live run for each number.
ABOUT_NUMBERS = replace(NOOP, key=lambda payload: str(payload["number"]), unique="live")

# The options of a request that names none: naming a default does not change what is requested.
DEFAULTS = {"queue": None, "run_at": None, "priority": 0, "max_attempts": None}

# The kind of a key that is taken by other content, and the key.
Conflict: TypeAlias = tuple[type[Exception], str | None]


@dataclass(frozen=True)
class Asking:
    """Enqueue one run, or many at once: a payload and a key each, and options and whether they have natural keys."""

    asks: tuple[tuple[Mapping[str, Any], str | None], ...]
    options: Mapping[str, Any]
    about_numbers: bool = False
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> list[Enqueued] | Conflict:
        """Return the outcomes, or the key that is taken by other content."""
        payloads, keys = zip(*self.asks, strict=True)
        job_type = ABOUT_NUMBERS if self.about_numbers else NOOP
        try:
            if len(self.asks) == 1:
                return [queue.enqueue(connection, job_type, payloads[0], key=keys[0], **self.options)]
            return queue.enqueue_many(connection, job_type, payloads, keys=keys, **self.options)
        except (KeyConflict, NaturalKeyConflict) as conflict:
            return type(conflict), conflict.key

    def expect(self, world: World, now: datetime, answer: list[Enqueued] | Conflict) -> list[Enqueued] | Conflict:
        """Expect one run for each key, of both kinds; other content under a key refuses all of them.

        An idempotency key whose request gets the run that holds its natural key belongs to this run from then on.
        """
        ids = [outcome.run_id for outcome in answer] if isinstance(answer, list) else range(-len(self.asks), 0)
        asked, held = dict(world.asked), world.held()
        new: set[int] = set()
        reserved = self._reserved()
        # The queue inserts in the order of the keys.
        for place in sorted(range(len(self.asks)), key=self._order):
            key, number, content = self._request(place)
            if key not in asked and number not in held and reserved.get(key, place) == place:
                new.add(place)
                asked |= {key: (ids[place], content)} if key is not None else {}
                held |= {number: (ids[place], content)} if number is not None else {}
        outcomes = []
        for place, run_id in enumerate(ids):
            key, number, content = self._request(place)
            if place not in new:
                run_id, requested = asked[key] if key in asked else held[number]
                if requested != content:
                    return (KeyConflict, key) if key in asked else (NaturalKeyConflict, number)
                asked |= {key: (run_id, content)} if key is not None else {}
            outcomes.append(Enqueued(run_id, replayed=place not in new))
        world.asked = asked
        for place in sorted(new):
            self._add(world, place, ids[place], now)
        return outcomes

    def _reserved(self) -> dict[str | None, int]:
        """Return the place of the request that reserves each idempotency key: the first, if facts can be released."""
        places = range(len(self.asks) - 1, -1, -1)
        return {self.asks[place][1]: place for place in places if self.about_numbers and self.asks[place][1]}

    def _request(self, place: int) -> tuple[str | None, str | None, object]:
        """Return the keys of both kinds, and the content."""
        payload, key = self.asks[place]
        return key, str(payload["number"]) if self.about_numbers else None, (payload, {**DEFAULTS, **self.options})

    def _order(self, place: int) -> tuple[str, bool, str, int]:
        key, number, _ = self._request(place)
        return number or "", key is None, key or "", place

    def _add(self, world: World, place: int, run_id: int, now: datetime) -> None:
        """Add a run that is due now, unless a later time was given; a due run wakes sleeping workers."""
        assert run_id not in world.runs, f"run {run_id} existed before it was enqueued"
        key, number, content = self._request(place)
        run = Run(run_id, now, now, payload=self.asks[place][0], idempotency_key=key, natural_key=number)
        run.unique_mode = "live" if self.about_numbers else "ever"
        given = {name: value for name, value in self.options.items() if value is not None}
        run.becomes(Event.ENQUEUE, Status.QUEUED, now, **given)
        world.runs[run.id], world.contents[run.id] = run, content
        world.woken |= world.asleep and run.run_at <= now

    def locks(self) -> set[int]:
        """Return nothing: it locks only its new runs."""
        return set()
