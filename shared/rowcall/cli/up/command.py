"""`rowcall up`."""

from __future__ import annotations

import json
import os
import signal

import click

from rowcall.base import settings
from rowcall.base.child_processes import die_with
from rowcall.cli.up.demo import EXAMPLE, choose_app
from rowcall.cli.up.processes import FIRST_PAYLOAD, Running, Stop, up, wait


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the API.  [default: 8000, or a free one]")
@click.option("--with-parent", is_flag=True, help="Stop when the parent process ends, even if it was killed.")
def up_command(port: int | None, with_parent: bool) -> None:
    """Start PostgreSQL, the API and a worker on this machine, and show a run succeed.  Ctrl-C stops everything.

    With DATABASE_URL, the worker takes only runs that this command and its key enqueue, and the key expires after a
    day.  Without it, Rowcall starts its own PostgreSQL, keeps the data in ROWCALL_HOME, and reuses it next time.
    Without ROWCALL_APP, it runs Rowcall's example app, a small SaaS.
    """
    if with_parent:
        die_with(os.getppid(), signal.SIGTERM)
    is_example = choose_app()
    chosen = settings.read()
    click.echo("Starting PostgreSQL, the API and a worker ...")
    try:
        with up(chosen, port) as (running, children):
            for line in lines(running, chosen, is_example):
                click.echo(line)
            wait(children)
    except Stop:
        click.echo("\nRowcall is down.")


def lines(running: Running, chosen: settings.Settings, is_example: bool) -> list[str]:
    """Return the lines that `up` prints: URLs and commands to try."""
    run = running.first_run
    seconds = (run["finished_at"] - run["created_at"]).total_seconds()
    queued = {"queue": running.queue} if running.queue else {}
    request = json.dumps({"job_type": "noop", "payload": FIRST_PAYLOAD, **queued})
    bearer = f"-H 'Authorization: Bearer {running.key}'"
    # The local server's password can be printed: it opens nothing else.  A password in DATABASE_URL may.
    place = (
        ["DATABASE_URL", f"  worker      takes only runs of the queue {running.queue}, so none of your own"]
        if running.queue
        else [f"data in {chosen.home}", f"              psql {running.postgres}"]
    )
    return [
        "",
        "Rowcall is up.",
        "",
        f"  API         {running.api}   (described in {running.api}/openapi.json)",
        f"  PostgreSQL  {running.version}, {place[0]}",
        place[1],
        f"  demo run    {run['id']} ({run['job_type']}) {run['status']}, {seconds:.2f} seconds after it was enqueued",
        "",
        "Enqueue another run, and show the first one:",
        "",
        f"  curl -s {running.api}/v1/runs {bearer} -H 'Content-Type: application/json' -d '{request}'",
        f"  curl -s {running.api}/v1/runs/{run['id']} {bearer}",
        *(["", *running.shown] if running.shown else ()),
        *(
            ("", f"To use these jobs in another terminal, first run: export ROWCALL_APP={EXAMPLE}")
            if is_example
            else ()
        ),
        "",
        "Ctrl-C stops everything.",
    ]
