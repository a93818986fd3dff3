"""`rowcall worker run|once`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import click

from shared import logs, settings
from shared.database import database_url
from worker.processes import work_in_processes
from worker.working import Report, Task, Working

Command = Callable[..., Any]


def _options(command: Command) -> Command:
    """What both ways to work can be told."""
    for option in (
        click.option("--grace", type=click.FloatRange(0), help="Seconds for running handlers when told to stop."),
        click.option("--types", help="Serve only these job types: names with commas between.  [default: all]"),
        click.option("--queues", help="Serve only these queues: names with commas between.  [default: all]"),
        click.option(
            "--concurrency", type=click.IntRange(1, 1000), help="Runs at a time.  [default: ROWCALL_CONCURRENCY]"
        ),
    ):
        command = option(command)
    return command


@click.group("worker")
def worker_command() -> None:
    """Do what is due.  Any number of workers, of either kind, may work at once."""


@worker_command.command("run")
@_options
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker processes.")
def run_command(processes: int, **told: Any) -> None:
    """Stay and work.  SIGTERM or Ctrl-C lets running handlers finish; a second one ends at once."""
    if processes > 1:
        work_in_processes(processes)
    else:
        _work(once=False, **told)


@worker_command.command("once")
@_options
@click.option("--limit", type=click.IntRange(1), help="Claim this many runs at most.")
@click.option("--max-seconds", type=click.FloatRange(0), help="Claim no more after this long.")
def once_command(**told: Any) -> None:
    """Do everything that is due and go: for cron, as often as it likes, also overlapping."""
    click.echo(_work(once=True, **told))


def _work(
    once: bool, concurrency: int | None, grace: float | None, queues: str | None, types: str | None, **bounds: Any
) -> Report:
    chosen = settings.read()
    if grace is not None:
        chosen = dataclasses.replace(chosen, grace=grace)
    logs.configure(chosen)
    task = Task(once, concurrency or chosen.concurrency, _names(queues), _names(types), **bounds)
    with database_url(chosen) as url:
        return Working(chosen, url, task).work()


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
