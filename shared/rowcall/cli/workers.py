"""`rowcall workers`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.base.durations import duration_words
from rowcall.cli.session import command_transaction
from rowcall.cli.terminal.output import show_json, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.views.live_workers import HOLDER_INTERVALS, MISSED_INTERVALS
from rowcall.queue.views.workers import list_workers
from rowcall.queue.workers import silence

LISTED = ("id", "state", "started_at", "heartbeat_at", "running", "runs")
MORE = ("version", "queues", "job_types", "concurrency", "stopped_at")


@click.command("workers")
@click.option("--stopped", is_flag=True, help="Also list workers that stopped or went silent in the last day.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Show at most this many.")
@table_options
def workers_command(stopped: bool, limit: int, table: Table) -> None:
    """List workers, the newest first, and the runs that each is performing.

    A worker that misses heartbeats, because it was killed or cannot reach the database, shows how long it has been
    silent, such as `busy, silent for 50 s`.  It is listed until its last heartbeat is 150 seconds old, or three times
    ROWCALL_HEARTBEAT if that is longer.
    """
    heartbeat = settings.read().heartbeat
    with command_transaction() as connection:
        workers = list_workers(connection, limit, heartbeat=heartbeat, stopped=stopped).workers
        gone = [] if workers or stopped else list_workers(connection, 1, heartbeat=heartbeat, stopped=True).workers
        now = clock(connection)
    if table.as_json:
        show_json(workers)
        return
    rows = [{**worker, "state": _state(worker, heartbeat), "runs": _in_words(worker)} for worker in workers]
    table.show(rows, LISTED, now, _none(gone, stopped), MORE, whole=("state",))


def _none(gone: Sequence[Row], stopped: bool) -> str:
    """Say that no worker is listed; where cron starts workers, this is the usual state, so say when one was here."""
    if gone:
        ago = duration_words(timedelta(seconds=int(gone[0]["heartbeat_age_seconds"])))
        return wrapped(f"no worker is alive; the last heartbeat was {ago} ago (`rowcall workers --stopped`)")
    none = "no worker was alive in the last day" if stopped else "no worker is alive"
    return wrapped(f"{none}; start one with `rowcall worker run`, or let cron start `rowcall worker once` every minute")


def _state(worker: Row, heartbeat: float) -> str:
    """Return what a worker is doing; if it is late, as `rowcall runs explain` defines that, add for how long.

    A busy worker may be asleep until the next notification, with some threads free.
    """
    silent = worker["heartbeat_age_seconds"]
    if worker["stopped_at"] or silent > silence(heartbeat):
        return "stopped" if worker["stopped_at"] else "silent"
    state = "busy" if worker["running"] else "sleeping" if worker["sleeping"] else "awake"
    intervals = HOLDER_INTERVALS if worker["running"] else MISSED_INTERVALS
    if silent <= intervals * (worker["heartbeat_seconds"] or heartbeat):
        return state
    return f"{state}, silent for {duration_words(timedelta(seconds=int(silent)))}"


def _in_words(worker: Row) -> list[str]:
    """Name the runs, such as "noop 17"."""
    return [f"{run['job_type']} {run['run_id']}" for run in worker["runs"]]
