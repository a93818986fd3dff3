"""The commands `rowcall worker run` and `rowcall worker once`."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from rowcall.base import logs, settings
from rowcall.base.database import internal_transaction
from rowcall.base.logs import LogEvent, log
from rowcall.base.settings import Settings
from rowcall.base.tracing import exporter
from rowcall.cli.parameters import Seconds
from rowcall.cli.terminal.group import Group
from rowcall.local_postgres.url import database_url
from rowcall.queue.workers import silence, unserved
from rowcall_worker.install import ENVIRONMENT_FILE
from rowcall_worker.runtime.task import MAX_TIME_SECONDS, Report, Task
from rowcall_worker.runtime.worker import Worker

Command = Callable[..., Any]

# A batch of quick runs is thousands of objects, and none of them is in a reference cycle.  With Python's default of
# 700 to 2,000 new objects, the collector examines such a batch several times, which takes a tenth of the worker's time.
COLLECTED_AFTER = 10_000


def _options(command: Command) -> Command:
    """Add the options that `run` and `once` share."""
    for option in (
        click.option("--grace", type=Seconds(0), help="Seconds that running handlers are given to finish at shutdown."),
        click.option("--types", help="Run only these job types, separated by commas.  [default: all]"),
        click.option("--queues", help="Serve only these queues, separated by commas.  [default: all]"),
        click.option(
            "--concurrency",
            type=click.IntRange(1, 1000),
            help="How many runs to perform at a time.  [default: ROWCALL_CONCURRENCY]",
        ),
    ):
        command = option(command)
    return command


def _print_options(command: Command) -> Command:
    """Add the options that print a configuration instead of performing runs."""
    for option in (
        click.option("--image", help="The image of the CronJob.  [default: rowcall:VERSION]"),
        click.option(
            "--environment-file", metavar="PATH", help=f"The file with the secrets.  [default: {ENVIRONMENT_FILE}]"
        ),
        click.option("--print-k8s", "k8s", is_flag=True, help="Print a Kubernetes CronJob."),
        click.option("--print-systemd", "systemd", is_flag=True, help="Print a systemd service and timer."),
        click.option("--print-crontab", "crontab", is_flag=True, help="Print a line for `crontab -e`."),
    ):
        command = option(command)
    return command


@click.group("worker", cls=Group)
def worker_command() -> None:
    """Perform due runs.  Any number of workers can run at the same time."""


@worker_command.command("run")
@_options
@click.option(
    "--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of worker processes."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve metrics on this port, and with --processes on the next ports too.  [default:"
    " ROWCALL_WORKER_METRICS_PORT]",
)
def run_command(processes: int, metrics_port: int | None, **options: Any) -> None:
    """Keep performing due runs until SIGTERM or Ctrl-C, or until the terminal closes; running handlers may finish.

    A second SIGTERM or Ctrl-C, more than a second later, stops the worker at once.  It then logs the runs that stay
    running until their leases expire.
    """
    if processes > 1:
        from rowcall_worker.supervisor import supervise_processes

        supervise_processes([_port_of(number, metrics_port) for number in range(processes)])
    else:
        _work(once=False, metrics_port=metrics_port, **options)


def _port_of(number: int, metrics_port: int | None) -> list[str]:
    """Return the option for the metrics port; each of several processes needs its own port."""
    first = settings.read().worker_metrics_port if metrics_port is None else metrics_port
    if first is None:
        return []
    return ["--metrics-port", str(first + number if first else 0)]


@worker_command.command("once")
@_options
@click.option("--limit", type=click.IntRange(1), help="Claim at most this many runs.")
@click.option(
    "--max-time",
    type=Seconds(0),
    help=f"Seconds after which the worker claims no more runs; running ones finish.  [default: {MAX_TIME_SECONDS:g}]",
)
@_print_options
def once_command(
    crontab: bool, systemd: bool, k8s: bool, environment_file: str | None, image: str | None, **options: Any
) -> None:
    """Perform all due runs, then exit.  For cron; several may run at the same time.

    With a --print option, only print a configuration for cron, systemd or Kubernetes that starts this command every
    minute with the other options given here, and with the program, folders, settings and user of this installation.
    It contains no secrets.
    """
    asked = {"crontab": crontab, "systemd": systemd, "k8s": k8s}
    formats = [name for name, given in asked.items() if given]
    if len(formats) > 1:
        raise click.UsageError(f"use --print-{formats[0]} or --print-{formats[1]}, not both")
    if environment_file is not None and not (crontab or systemd):
        raise click.UsageError("--environment-file requires --print-crontab or --print-systemd")
    if image is not None and not k8s:
        raise click.UsageError("--image requires --print-k8s")
    if formats:
        # Imported here because cron starts this command every minute and rarely prints.
        from rowcall_worker.install.discover import discover
        from rowcall_worker.install.forms import FORMS

        found = discover(
            _settings(options["grace"]), options, _names(options["types"], "types"), environment_file, image
        )
        click.echo(FORMS[formats[0]](found), nl=False)
    else:
        click.echo(_work(once=True, **options))


def _work(
    once: bool,
    concurrency: int | None,
    grace: float | None,
    queues: str | None,
    types: str | None,
    metrics_port: int | None = None,
    **bounds: Any,
) -> Report:
    chosen = _settings(grace)
    logs.configure(chosen)
    given = {name: value for name, value in bounds.items() if value is not None}
    task = Task(once, concurrency or chosen.concurrency, _names(queues, "queues"), _names(types, "types"), **given)
    with database_url(chosen) as url:
        flush = exporter.configure("rowcall-worker")
        worker = Worker(chosen, url, task)
        # What is loaded now stays until the process ends, so the collector need not examine it again.
        gc.freeze()
        gc.set_threshold(COLLECTED_AFTER)
        with nullcontext() if once else _metrics(worker, chosen, metrics_port):
            report = worker.work()
        flush()
        if once and chosen.app is None and not worker.found_idle:
            _warn_of_unserved(url, chosen)
        return report


def _metrics(worker: Worker, chosen: Settings, metrics_port: int | None) -> AbstractContextManager[object]:
    """Serve the worker's metrics, if a port is set."""
    port = chosen.worker_metrics_port if metrics_port is None else metrics_port
    if port is None:
        return nullcontext()
    # Imported here, because few workers serve metrics.
    from rowcall_worker.runtime.counts.metrics import WorkerFigures
    from rowcall_worker.runtime.counts.metrics_server import serving
    from rowcall_worker.runtime.counts.totals import Totals

    worker.in_flight.counter.totals = Totals()
    figures = WorkerFigures(worker.id, worker.in_flight, worker.outage)
    return serving(chosen.worker_metrics_host, port, figures.rendered)


def _warn_of_unserved(url: str, chosen: Settings) -> None:
    """Warn of due runs that no live worker serves, perhaps because a line in the crontab lacks ROWCALL_APP."""
    with internal_transaction(url) as connection:
        rows = unserved(connection, silence(chosen.heartbeat), waited=0)
    if rows:
        types = sorted({row["job_type"] for row in rows})
        remedy = "set ROWCALL_APP to the package that declares them"
        log().warning(LogEvent.RUNS_UNSERVED, runs=sum(row["waiting"] for row in rows), job_types=types, remedy=remedy)


def _settings(grace: float | None) -> Settings:
    chosen = settings.read()
    return chosen if grace is None else dataclasses.replace(chosen, grace=grace)


def _names(text: str | None, option: str) -> list[str] | None:
    """Return the names in an option's value; None without one."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError(f"--{option} names nothing: leave it out, or list names, such as `--{option} one,two`")
    return names
