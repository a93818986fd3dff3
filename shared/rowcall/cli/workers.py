"""`rowcall workers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

import click

from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.base.durations import duration_words
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.lease import CONSUMER
from rowcall.queue.views.handed_over import HOLDERS_MOST, HandedOver, list_handed_over
from rowcall.queue.views.live_workers import HOLDER_INTERVALS, MISSED_INTERVALS
from rowcall.queue.views.stats import SCANNED_MOST
from rowcall.queue.views.workers import list_workers
from rowcall.queue.workers import silence

LISTED = ("id", "state", "started_at", "heartbeat_at", "running", "runs")
MORE = ("version", "queues", "job_types", "concurrency", "stopped_at")
WAITING = ("queue", "task", "waiting", "waiting_since", "run_id")
CONSUMERS = ("id", "state", "heartbeat_at", "running", "runs")


@click.command("workers")
@click.option("--stopped", is_flag=True, help="Also list workers that stopped or went silent in the last day.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def workers_command(stopped: bool, limit: int, table: Table) -> None:
    """List workers, the newest first, and the runs that each is performing.

    A worker that misses heartbeats, because it was killed or cannot reach the database, shows how long it has been
    silent, such as `busy, silent for 50 s`.  It is listed until its last heartbeat is 150 seconds old, or three times
    ROWCALL_HEARTBEAT if that is longer.

    If runs were handed over, also list the messages that wait for a consumer, and the consumers that perform runs.  An
    idle consumer is not known.
    """
    heartbeat = settings.read().heartbeat
    with command_transaction() as connection:
        workers = list_workers(connection, limit, heartbeat=heartbeat, stopped=stopped).workers
        gone = [] if workers or stopped else list_workers(connection, 1, heartbeat=heartbeat, stopped=True).workers
        handed_over = list_handed_over(connection, heartbeat=heartbeat)
        now = clock(connection)
    if table.as_json:
        show_json({"workers": workers, "handed_over": asdict(handed_over)})
        return
    table.show(_rows(workers, heartbeat), LISTED, now, _none(gone, stopped), MORE, whole=("state",))
    _show_handed_over(handed_over, heartbeat, table, now)


def _rows(holders: Sequence[Row], heartbeat: float) -> list[Row]:
    return [{**holder, "state": _state(holder, heartbeat), "runs": _in_words(holder)} for holder in holders]


def _show_handed_over(found: HandedOver, heartbeat: float, table: Table, now: datetime) -> None:
    """Show what waits for consumers and what they perform, if there is any."""
    if found.waiting:
        click.echo("\nHanded over to Celery, and waiting for a consumer:")
        table.show(found.waiting, WAITING, now)
    if found.consumers:
        click.echo("\nConsumers of Celery that perform runs:")
        consumers = [{**row, "id": row["id"].removeprefix(CONSUMER)} for row in found.consumers]
        table.show(_rows(consumers, heartbeat), CONSUMERS, now, whole=("state",))
    if found.more:
        click.echo(
            wrapped(
                f"There may be more: of each queue and priority, only the {SCANNED_MOST:,} runs that have been due"
                f" longest are counted, and at most {HOLDERS_MOST} lines are shown."
            )
        )


def _none(gone: Sequence[Row], stopped: bool) -> str:
    """Say that no worker is listed; where cron starts workers, this is the usual state, so say when one was here."""
    if gone:
        ago = duration_words(timedelta(seconds=int(gone[0]["heartbeat_age_seconds"])))
        return wrapped(f"no worker is alive; the last heartbeat was {ago} ago (`rowcall workers --stopped`)")
    none = "no worker was alive in the last day" if stopped else "no worker is alive"
    return wrapped(f"{none}; start one with `rowcall worker run`, or let cron start `rowcall worker once` every minute")


def _state(worker: Row, heartbeat: float) -> str:
    """Return what a worker or consumer does; if it is late, as `rowcall runs explain` defines that, add for how long.

    A busy worker may be asleep until the next notification, with some threads free.
    """
    silent = worker["heartbeat_age_seconds"]
    if worker.get("stopped_at") or silent > silence(heartbeat):
        return "stopped" if worker.get("stopped_at") else "silent"
    state = "busy" if worker["running"] else "sleeping" if worker["sleeping"] else "awake"
    intervals = HOLDER_INTERVALS if worker["running"] else MISSED_INTERVALS
    if silent <= intervals * (worker["heartbeat_seconds"] or heartbeat):
        return state
    return f"{state}, silent for {duration_words(timedelta(seconds=int(silent)))}"


def _in_words(worker: Row) -> list[str]:
    """Name the runs, such as "noop 17"."""
    return [f"{run['job_type']} {run['run_id']}" for run in worker["runs"]]
