"""The first sentence of the overview, and what needs an operator, the most urgent first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import flask

from rowcall import effects
from rowcall.base import settings
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import longest_due
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall_api.page.words import duration, plural

State: TypeAlias = Literal["good", "warn", "bad"]


@dataclass(frozen=True)
class Finding:
    """Something that needs an operator: how urgent it is, a sentence, and the screen that shows more."""

    state: State
    sentence: str
    href: str


@dataclass(frozen=True)
class Late:
    """The run that has been due longest, and the first reason why it waits."""

    run: Row
    why: str


def late_run(connection: Connection, queues: list[Row]) -> Late | None:
    """Return the run that has been due longest in any queue, if it is late; a minute's cron is not late."""
    latest = max(queues, key=lambda queue: queue["oldest_due_age_seconds"], default=None)
    if latest is None or latest["oldest_due_age_seconds"] <= SILENCE_SECONDS:
        return None
    return waiting_in(connection, latest["name"])


def waiting_in(connection: Connection, queue: str) -> Late | None:
    """Return the run of a queue that has been due longest, and the first reason why it waits."""
    run = longest_due(connection, queue)
    if run is None:  # it has begun meanwhile
        return None
    chosen = settings.read()
    types = catalogue()
    told = effects.explain_with_effects(connection, run["id"], types.limits, chosen.heartbeat, types)
    failing = [condition.message for condition in told.conditions if not condition.holds]
    return Late(run, failing[0] if failing else told.message)


def findings(stats: Row, late: Late | None) -> list[Finding]:
    """Return what needs an operator, the most urgent first."""
    return [*_runs(stats, late), *_schedules(stats), *_paused(stats)]


def headline(stats: Row, found: list[Finding]) -> Finding:
    """Return the one sentence that says whether all is well."""
    if found:
        return found[0]
    workers = plural(stats["workers_alive"], "worker")
    rest = (
        ""
        if not stats["attempts_failed_last_hour"]
        else (f"; {plural(stats['attempts_failed_last_hour'], 'attempt')} failed in the last hour")
    )
    return Finding("good", f"All well: {workers}, nothing late{rest}.", _to("page.workers"))


def _runs(stats: Row, late: Late | None) -> Iterator[Finding]:
    unknown = sum(stats["effects_unknown"].values())
    if unknown:
        waits = "waits" if unknown == 1 else "wait"
        yield Finding(
            "bad",
            f"{plural(unknown, 'effect')} with an unknown outcome {waits} for you: find out what happened, and say so.",
            _to("page.effects", state="unknown"),
        )
    if late is not None:
        run = late.run
        yield Finding(
            "bad",
            f"{plural(run['runs'], 'run')} of {run['job_type']} up to {duration(run['late'])} late: {late.why}",
            _to("page.run", run_id=run["id"]),
        )
    elif not stats["workers_alive"] and any(queue["due"] for queue in stats["queues"]):
        yield Finding("warn", "Runs are due, and no worker is alive.", _to("page.workers"))
    if stats["runs_dead_last_day"]:
        yield Finding(
            "bad",
            f"{plural(stats['runs_dead_last_day'], 'run')} died in the last day: see why, and retry them.",
            _to("page.runs", status="dead"),
        )


def _schedules(stats: Row) -> Iterator[Finding]:
    tick = stats["tick"]
    if tick["silent"]:
        yield Finding(
            "bad",
            f"No schedule has been decided for {duration(tick['age_seconds'])}: no worker ticks.",
            _to("page.workers"),
        )
    overdue = stats["definitions"]["overdue"]
    if overdue:
        yield Finding("bad", f"{plural(overdue, 'definition')} overdue.", _to("page.definitions"))


def _paused(stats: Row) -> Iterator[Finding]:
    for queue in stats["queues"]:
        if queue["paused_at"] is not None:
            waiting = f", and {plural(queue['due'], 'run')} due in it" if queue["due"] else ""
            yield Finding("warn", f"The queue {queue['name']} is paused{waiting}.", _to("page.queues"))
        elif queue["max_running"] == 0:
            yield Finding("warn", f"The queue {queue['name']} has the limit 0: nothing in it runs.", _to("page.queues"))
    paused = stats["definitions"]["paused"]
    if paused:
        yield Finding("warn", f"{plural(paused, 'definition')} paused.", _to("page.definitions"))


def _to(endpoint: str, **values: Any) -> str:
    return flask.url_for(endpoint, **values)
