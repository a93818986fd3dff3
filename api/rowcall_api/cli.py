"""`rowcall api`."""

from __future__ import annotations

import click

from rowcall.base import settings
from rowcall.base.logs import LogEvent, log
from rowcall.local_postgres.url import database_url
from rowcall_api.app import create_app
from rowcall_api.http.server import Server, listen, options


@click.command("api")
@click.option("--host", help="Address to listen on.  [default: ROWCALL_API_HOST]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port, 0 for a free one.  [default: ROWCALL_API_PORT]")
def api_command(host: str | None, port: int | None) -> None:
    """Serve the HTTP API, until SIGTERM or Ctrl-C."""
    chosen = settings.read()
    host = host or chosen.api_host
    listener = listen(host, chosen.api_port if port is None else port)
    with database_url(chosen) as url:
        app = create_app(url)
        log().info(LogEvent.API_STARTED, url=f"http://{host}:{listener.getsockname()[1]}")
        Server(app, options(chosen, listener)).run()
