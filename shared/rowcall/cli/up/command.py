"""`rowcall up`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from importlib.util import find_spec

import click

from rowcall.base import settings
from rowcall.base.child_processes import die_with
from rowcall.base.errors import RowcallError
from rowcall.cli import extras
from rowcall.cli.terminal.confirm import confirm, yes_option
from rowcall.cli.terminal.output import in_foreground
from rowcall.cli.up.alone import alone
from rowcall.cli.up.children import wait
from rowcall.cli.up.demo import choose_app, is_installed, program
from rowcall.cli.up.processes import Running, up
from rowcall.cli.up.reports import Reports
from rowcall.cli.up.stop import Stop
from rowcall.local_postgres.url import named


@click.command("up")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port of the API.  [default: ROWCALL_API_PORT if it is set; else 8000, or a free port]",
)
@click.option("--with-parent", is_flag=True, help="Stop when the parent process ends, even if it was killed.")
@yes_option
def up_command(port: int | None, with_parent: bool, yes: bool) -> None:
    """Start PostgreSQL, the API and a worker on this machine, and show a run succeed.  Ctrl-C stops everything.

    With DATABASE_URL, the worker takes only runs of the queue rowcall_up, so name that queue when you enqueue; the API
    key that this command creates can only enqueue and read, and expires after a day.  Without DATABASE_URL, Rowcall
    starts its own PostgreSQL, keeps the data in ROWCALL_HOME, and reuses it next time.  Without ROWCALL_APP, it runs
    Rowcall's example app, a small SaaS, if the extra `example` is installed; it does not start in a folder that
    contains another app.

    On a terminal, with the extra `all`, it shows services, runs and effects as they change; logs are in
    ROWCALL_HOME/log.  In a pipe, and with NO_COLOR or TERM=dumb, it prints plain lines.
    """
    if with_parent:
        die_with(os.getppid(), signal.SIGTERM)
    if not all(map(find_spec, extras.API)):
        raise RowcallError("up starts the API, which needs the api extra: pip install 'rowcall[api]'")
    is_example = choose_app()
    chosen = settings.read()
    with alone(chosen.home, os.getpid()):
        if chosen.database_url:
            confirm(f"this migrates {named(chosen.database_url)} and starts a worker on it", yes)
        _run(chosen, port, is_example)


def _run(chosen: settings.Settings, port: int | None, is_example: bool) -> None:
    """Run `up` until a signal, with the view if a person is watching and the extra for it is installed."""
    can_draw, has_rich = _can_draw(), find_spec("rich") is not None
    if can_draw and has_rich:
        # Loaded only here: no other command needs rich.
        from rowcall.cli.up.live.run import run

        run(chosen, port, is_example)
    else:
        if sentence := without(view=can_draw and not has_rich, example=not chosen.app and not is_installed()):
            click.echo(sentence)
        _run_plainly(chosen, port, is_example)


def without(view: bool, example: bool) -> str | None:
    """Say what is missing because an extra is not installed, and which extra has it."""
    missing = [*(["no live view"] if view else ()), *(["no example app"] if example else ())]
    extra, them = "all" if view else "example", "them" if len(missing) > 1 else "it"
    return f"There is {' and '.join(missing)}: pip install 'rowcall[{extra}]' adds {them}." if missing else None


def _can_draw() -> bool:
    """Whether a person is watching a terminal that can draw in place; otherwise, plain lines are more useful."""
    if not sys.stdout.isatty() or not in_foreground() or os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("TERM", "") not in ("", "dumb", "unknown") and sys.stdout.encoding.lower() == "utf-8"


def _run_plainly(chosen: settings.Settings, port: int | None, is_example: bool) -> None:
    """Run `up` until a signal, and print lines that a script or a log can keep."""
    click.echo("Starting PostgreSQL, the API and a worker ...")
    try:
        with up(chosen, port, Reports(), is_example) as running:
            for line in lines(running, chosen):
                click.echo(line)
            wait(running.children)
    except Stop:
        click.echo("\nRowcall has stopped.")


def lines(running: Running, chosen: settings.Settings) -> list[str]:
    """Return the lines that `up` prints: what runs where, and what to do next."""
    run = running.first_run
    seconds = (run["finished_at"] - run["created_at"]).total_seconds()
    key = shlex.quote(str(chosen.home / "api_key"))
    # The local server's password can be printed, because it opens nothing else; one in DATABASE_URL may open more.
    place = (
        ["DATABASE_URL", f"  worker      takes only runs of the queue {running.queue}, so none of your own"]
        if running.queue
        else [f"data in {chosen.home}", f"              psql {running.postgres}"]
    )
    return [
        "",
        "Rowcall is up.",
        "",
        f"  page        {running.page}",
        "              signs you in, once and within 10 minutes; later, sign in with the key",
        f"  API         {running.api}   (its docs: {running.api}/docs; a key for it is in {chosen.home / 'api_key'})",
        *([f"              {running.moved}"] if running.moved else ()),
        f"  PostgreSQL  {running.version}, {place[0]}",
        place[1],
        f"  demo run    {run['id']} ({run['job_type']}) {run['status']}, {seconds:.2f} seconds after it was enqueued",
        *(["", *running.demo.lines] if running.demo else ()),
        "",
        "Next, in another terminal in this folder:",
        "",
        *(f"  {step}" for step in running.before),
        f"  {running.first_step}",
        f"  {program()} runs list",
        *([f"  {program()} worker run     # your own jobs, which this worker leaves alone"] if running.queue else ()),
        f'  curl -s {running.api}/v1/runs/{run["id"]} -H "Authorization: Bearer $(cat {key})"',
        "",
        "Ctrl-C stops everything.",
    ]
