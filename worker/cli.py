"""`rowcall worker run|once`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import click

from shared import logs, settings
from shared.database import database_url
from worker.working import Report, work

Command = Callable[..., Any]


def _options(command: Command) -> Command:
    """What both ways to work can be told."""
    for option in (
        click.option("--grace", type=click.FloatRange(0), help="Seconds for running handlers when told to stop."),
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
def run_command(concurrency: int | None, queues: str | None, grace: float | None) -> None:
    """Stay and work.  SIGTERM or Ctrl-C lets running handlers finish; a second one ends at once."""
    _work(grace, once=False, concurrency=concurrency, queues=_names(queues))


@worker_command.command("once")
@_options
@click.option("--limit", type=click.IntRange(1), help="Claim this many runs at most.")
@click.option("--max-seconds", type=click.FloatRange(0), help="Claim no more after this long.")
def once_command(
    concurrency: int | None, queues: str | None, grace: float | None, limit: int | None, max_seconds: float | None
) -> None:
    """Do everything that is due and go: for cron, as often as it likes, also overlapping."""
    report = _work(
        grace,
        once=True,
        concurrency=concurrency,
        queues=_names(queues),
        limit=limit,
        max_seconds=max_seconds,
    )
    click.echo(report)


def _work(grace: float | None, **options: Any) -> Report:
    chosen = settings.read()
    if grace is not None:
        chosen = dataclasses.replace(chosen, grace=grace)
    logs.configure(chosen)
    with database_url(chosen) as url:
        return work(chosen, url, **options)


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
