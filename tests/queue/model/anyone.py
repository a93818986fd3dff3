"""Anyone enqueues runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.base.errors import KeyConflict
from rowcall.queue import Enqueued
from rowcall.status import Event, Status
from tests.queue.model.run import Run
from tests.queue.model.world import World

OPERATOR = "operator"


@dataclass(frozen=True)
class Asking:
    """Enqueue one run, or many at once: a payload and a key each, and options for all of them."""

    asks: tuple[tuple[Mapping[str, Any], str | None], ...]
    options: Mapping[str, Any]
    actor: str = OPERATOR

    def perform(self, connection: PgConnection) -> list[Enqueued] | str:
        """Return the outcomes, or the key that is taken by other content."""
        payloads, keys = zip(*self.asks, strict=True)
        try:
            if len(self.asks) == 1:
                return [queue.enqueue(connection, "noop", payloads[0], key=keys[0], **self.options)]
            return queue.enqueue_many(connection, "noop", payloads, keys=keys, **self.options)
        except KeyConflict as conflict:
            return conflict.key

    def expect(self, world: World, now: datetime, answer: list[Enqueued] | str) -> list[Enqueued] | str:
        """Expect one run for each key; other content under a key refuses all of them."""
        asked, outcomes = dict(world.asked), []
        new = [outcome.run_id for outcome in answer] if isinstance(answer, list) else [0] * len(self.asks)
        for (payload, key), run_id in zip(self.asks, new, strict=True):
            content = (payload, self.options)
            if key is None or key not in asked:
                outcomes.append(Enqueued(run_id, replayed=False))
            elif asked[key][1] == content:
                outcomes.append(Enqueued(asked[key][0], replayed=True))
            else:
                return key
            if key is not None:
                asked.setdefault(key, (run_id, content))
        world.asked = asked
        for (payload, key), outcome in zip(self.asks, outcomes, strict=True):
            if not outcome.replayed:
                self._add(world, Run(outcome.run_id, now, now, now, payload=payload, idempotency_key=key), now)
        return outcomes

    def _add(self, world: World, run: Run, now: datetime) -> None:
        """Add a run that is due now, unless a later time was given; a due run wakes sleeping workers."""
        assert run.id not in world.runs, f"run {run.id} existed before it was enqueued"
        given = {name: value for name, value in self.options.items() if value is not None}
        run.becomes(Event.ENQUEUE, Status.QUEUED, now, **given)
        world.runs[run.id] = run
        world.woken |= world.asleep and run.run_at <= now

    def locks(self) -> set[int]:
        """Return nothing: it locks only its new runs."""
        return set()
