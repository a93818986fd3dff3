"""`rowcall up`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import click
from psycopg2.extensions import parse_dsn

from rowcall.base import settings
from rowcall.base.child_processes import die_with
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.up.demo import EXAMPLE, choose_app, program
from rowcall.cli.up.processes import FIRST_PAYLOAD, Running, Stop, up, wait


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the API.  [default: 8000, or a free one]")
@click.option("--with-parent", is_flag=True, help="Stop when the parent process ends, even if it was killed.")
@yes_option
def up_command(port: int | None, with_parent: bool, yes: bool) -> None:
    """Start PostgreSQL, the API and a worker on this machine, and show a run succeed.  Ctrl-C stops everything.

    With DATABASE_URL, the worker takes only runs that this command and its key enqueue, and the key expires after a
    day.  Without it, Rowcall starts its own PostgreSQL, keeps the data in ROWCALL_HOME, and reuses it next time.
    Without ROWCALL_APP, it runs Rowcall's example app, a small SaaS.
    """
    if with_parent:
        die_with(os.getppid(), signal.SIGTERM)
    is_example = choose_app()
    chosen = settings.read()
    if chosen.database_url:
        confirm(f"this migrates {_named(chosen.database_url)} and starts a worker on it", yes)
    click.echo("Starting PostgreSQL, the API and a worker ...")
    logs = chosen.home / "log" if _has_view() else None
    if logs:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with up(chosen, port, logs) as running:
            if logs:
                _watch(running, chosen, logs)
            for line in lines(running, chosen, is_example):
                click.echo(line)
            wait(running.children)
    except Stop:
        click.echo("\nRowcall is down.")


def _has_view() -> bool:
    """Return whether this is a terminal that can show the live view; otherwise `up` prints lines."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and find_spec("rich") is not None


def _watch(running: Running, chosen: settings.Settings, logs: Path) -> NoReturn:
    from rowcall.cli.up.picture import Frame
    from rowcall.cli.up.view import watch

    data = "DATABASE_URL" if running.queue else f"data in {_near(chosen.home)}"
    only = f"takes only runs of the queue {running.queue}, so none of your own; " if running.queue else ""
    services = {
        "Rowcall is up": "Ctrl-C stops everything",
        "PostgreSQL": f"{running.version.partition(' ')[0]}, {data}",
        "API": f"{running.api}, its key is in {_near(chosen.home / 'api_key')}",
        "worker": f"{only}logs are in {_near(logs)}",
    }
    shown = next(iter(running.notes), running.first_run["id"])
    queue = f" --queue {running.queue}" if running.queue else ""
    commands = [
        "Next, in another terminal in this folder:",
        f"  {program()} enqueue noop '{json.dumps(FIRST_PAYLOAD)}'{queue}",
        f"  {program()} runs show {shown}",
        f"  open {running.api}/docs",
    ]
    watch(running, Frame(services, running.notes, commands))


def _near(path: Path) -> str:
    """Return a path as a person in this folder writes it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _named(url: str) -> str:
    """The database as a person knows it, without its password."""
    parts = parse_dsn(url)
    return f"the database {parts.get('dbname', 'of DATABASE_URL')} on {parts.get('host', 'the local socket')}"


def lines(running: Running, chosen: settings.Settings, is_example: bool) -> list[str]:
    """Return the lines that `up` prints: what runs where, and what to do next."""
    run = running.first_run
    seconds = (run["finished_at"] - run["created_at"]).total_seconds()
    key = shlex.quote(str(chosen.home / "api_key"))
    # The local server's password can be printed: it opens nothing else.  A password in DATABASE_URL may.
    place = (
        ["DATABASE_URL", f"  worker      takes only runs of the queue {running.queue}, so none of your own"]
        if running.queue
        else [f"data in {chosen.home}", f"              psql {running.postgres}"]
    )
    queue = f" --queue {running.queue}" if running.queue else ""
    return [
        "",
        "Rowcall is up.",
        "",
        f"  API         {running.api}   (its docs: {running.api}/docs; a key for it is in {chosen.home / 'api_key'})",
        f"  PostgreSQL  {running.version}, {place[0]}",
        place[1],
        f"  demo run    {run['id']} ({run['job_type']}) {run['status']}, {seconds:.2f} seconds after it was enqueued",
        *(["", *running.shown] if running.shown else ()),
        "",
        "Next, in another terminal in this folder:",
        "",
        *([f"  export ROWCALL_APP={EXAMPLE}"] if is_example else ()),
        f"  {program()} enqueue noop '{json.dumps(FIRST_PAYLOAD)}'{queue}",
        f"  {program()} runs list",
        *([f"  {program()} worker run     # your own jobs, which this worker leaves alone"] if running.queue else ()),
        f'  curl -s {running.api}/v1/runs/{run["id"]} -H "Authorization: Bearer $(cat {key})"',
        "",
        "Ctrl-C stops everything.",
    ]
