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
    """The run that has been due longest, the first reason why it waits, and whether something holds it up."""

    run: Row
    why: str
    held: bool = True


def late_run(connection: Connection, queues: list[Row]) -> Late | None:
    """Return the run that has been due longest in any queue, if it is late; waiting a minute for cron is not late."""
    latest = max(queues, key=lambda queue: queue["oldest_due_age_seconds"], default=None)
    if latest is None or latest["oldest_due_age_seconds"] <= SILENCE_SECONDS:
        return None
    return waiting_in(connection, latest["name"])


def waiting_in(connection: Connection, queue: str) -> Late | None:
    """Return the run of a queue that has been due longest, and the first reason why it waits."""
    run = longest_due(connection, queue)
    if run is None:  # it has started in the meantime
        return None
    chosen = settings.read()
    types = catalogue()
    told = effects.explain_with_effects(connection, run["id"], types.limits, chosen.heartbeat, types)
    failing = [condition.message for condition in told.conditions if not condition.holds]
    return Late(run, failing[0] if failing else told.message, bool(failing))


def findings(stats: Row, late: Late | None) -> list[Finding]:
    """Return what needs an operator, the most urgent first."""
    return [*_runs(stats, late), *_schedules(stats), *_paused(stats, late)]


def headline(stats: Row, found: list[Finding]) -> Finding:
    """Return the one sentence that says whether all is well."""
    if found:
        return found[0]
    alive, failed = stats["workers_alive"], stats["attempts_failed_last_hour"]
    # Cron may start `rowcall worker once` each minute, so that none is alive in between.
    living = f"{plural(alive, 'worker')} {'is' if alive == 1 else 'are'} alive"
    workers = living if alive else "no worker is alive at the moment"
    rest = f"; {plural(failed, 'attempt')} failed in the last hour" if failed else ""
    return Finding(
        "good", f"All is well: nothing is late; {workers}{rest}.", _to("page.failures" if failed else "page.workers")
    )


def _runs(stats: Row, late: Late | None) -> Iterator[Finding]:
    unknown = sum(stats["effects_unknown"].values())
    if unknown:
        waits = "waits" if unknown == 1 else "wait"
        yield Finding(
            "bad",
            f"{plural(unknown, 'effect')} with an unknown outcome {waits} for you: find out what happened, and record"
            " it.",
            _to("page.effects", state="unknown"),
        )
    if late is not None:
        run, many = late.run, late.run["runs"] > 1
        up_to = "up to " if many else ""
        yield Finding(
            "bad",
            f"{plural(run['runs'], 'run')} of {run['job_type']} {'are' if many else 'is'} {up_to}"
            f"{duration(run['late'])} late: {late.why}.",
            _to("page.run", run_id=run["id"]),
        )
    elif not stats["workers_alive"] and any(queue["due"] for queue in stats["queues"]):
        yield Finding("warn", "Runs are due, and no worker is alive.", _to("page.workers"))
    if stats["runs_dead_last_day"]:
        dead = stats["runs_dead_last_day"]
        yield Finding(
            "bad",
            f"{plural(dead, 'run')} died in the last day: see why, and retry {'it' if dead == 1 else 'them'}.",
            _to("page.runs", status="dead"),
        )


def _schedules(stats: Row) -> Iterator[Finding]:
    tick, overdue = stats["tick"], stats["definitions"]["overdue"]
    if tick["silent"]:
        since = (
            f"for {duration(tick['age_seconds'])}: no worker is ticking"
            if tick["worker"] is not None
            else "yet: no worker has ever ticked"
        )
        late = f", and {_definitions(overdue)} overdue" if overdue else ""
        yield Finding("bad", f"No nominal time has been processed {since}{late}.", _to("page.workers"))
    elif overdue:
        yield Finding("bad", f"{_definitions(overdue)} overdue: see why.", _to("page.definitions"))


def _paused(stats: Row, late: Late | None) -> Iterator[Finding]:
    for queue in stats["queues"]:
        if late is not None and late.why.startswith(f"queue {queue['name']} "):  # already said
            continue
        due = queue["due"]
        waiting = f", and {plural(due, 'run')} {'is' if due == 1 else 'are'} due in it" if due else ""
        here = _to("page.queue", name=queue["name"])
        if queue["paused_at"] is not None:
            yield Finding("warn", f"The queue {queue['name']} is paused{waiting}.", here)
        elif queue["max_running"] == 0:
            yield Finding("warn", f"The queue {queue['name']} has a limit of 0{waiting}.", here)
    paused = stats["definitions"]["paused"]
    if paused:
        yield Finding("warn", f"{_definitions(paused)} paused.", _to("page.definitions"))


def _definitions(number: int) -> str:
    return f"{plural(number, 'definition')} {'is' if number == 1 else 'are'}"


def _to(endpoint: str, **values: Any) -> str:
    return flask.url_for(endpoint, **values)
