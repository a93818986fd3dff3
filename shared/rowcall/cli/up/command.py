"""`rowcall up`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import click

from rowcall.base import settings
from rowcall.base.child_processes import die_with
from rowcall.cli.up.processes import DEMO_PAYLOAD, Running, Stop, up, wait
from rowcall_example.demo.runs import Shown


@click.command("up")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the API.  [default: 8000, or a free one]")
@click.option("--with-parent", is_flag=True, help="End when the process that started this one ends, even by SIGKILL.")
def up_command(port: int | None, with_parent: bool) -> None:
    """Start PostgreSQL, the API and a worker here, and show a run succeed.  Ctrl-C ends all of it.

    Without DATABASE_URL the database is Rowcall's own, kept in ROWCALL_HOME and found again next time; a small SaaS in
    it then shows the built-in jobs at work.
    """
    if with_parent:
        die_with(os.getppid(), signal.SIGTERM)
    chosen = settings.read()
    click.echo("Starting PostgreSQL, the API and a worker ...")
    try:
        with up(chosen, port) as (running, children):
            for line in told(running, chosen):
                click.echo(line)
            wait(children)
    except Stop:
        click.echo("\nRowcall is down.")


def told(running: Running, chosen: settings.Settings) -> list[str]:
    """What a newcomer needs to see, and to try next."""
    demo = running.demo
    seconds = (demo["finished_at"] - demo["created_at"]).total_seconds()
    request = json.dumps({"job_type": "noop", "payload": DEMO_PAYLOAD})
    bearer = f"-H 'Authorization: Bearer {running.key}'"
    place = "DATABASE_URL" if chosen.database_url else f"data in {chosen.home}"
    return [
        "",
        "Rowcall is up.",
        "",
        f"  API         {running.api}   (described in {running.api}/openapi.json)",
        f"  PostgreSQL  {running.version}, {place}",
        f"              psql {running.postgres}",
        f"  demo run    {demo['id']} ({demo['job_type']}) {demo['status']}, {seconds:.2f} seconds after it was asked",
        "",
        "Ask for a run yourself, and look at it:",
        "",
        f"  curl -s {running.api}/v1/runs {bearer} -H 'Content-Type: application/json' -d '{request}'",
        f"  curl -s {running.api}/v1/runs/{demo['id']} {bearer}",
        *(shown(running.shown) if running.shown else ()),
        "",
        "Ctrl-C ends everything.",
    ]


def shown(demo: Shown) -> list[str]:
    """Where the built-in jobs are seen at work, and what is left for a person to do."""
    program = "rowcall" if shutil.which("rowcall") else os.path.relpath(Path(sys.executable).with_name("rowcall"))
    lines = [
        "",
        "The built-in jobs are at work for the demo's small SaaS; see what they make, and what became of each:",
        "",
        f"  mails       {demo.mails}/*.eml",
        f"  reports     {demo.files}/sales_report   (PDF and CSV)",
        f"  charges     {demo.charges}",
        f"  webhooks    {demo.webhooks}   (one is refused at first, and comes again)",
        "",
        f"  {program} runs list",
        f"  {program} runs list --status dead",
    ]
    if demo.declined_run:
        lines.append(f"  {program} runs retry {demo.declined_run}   (its charge was declined; the next one is not)")
    return lines
