"""The command `rowcall api`."""

from __future__ import annotations

import socket

import click

from rowcall.base import settings
from rowcall.base.listeners import listen, url_of
from rowcall.base.logs import LogEvent, log
from rowcall.base.tracing import exporter
from rowcall.local_postgres.url import database_url
from rowcall_api.app import create_app
from rowcall_api.http.server import Server, options


@click.command("api")
@click.option("--host", help="Address to listen on.  [default: ROWCALL_API_HOST]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 picks a free port.  [default: ROWCALL_API_PORT]")
@click.option("--listener", type=int, hidden=True, help="Descriptor of a listening socket; `rowcall up` passes one.")
def api_command(host: str | None, port: int | None, listener: int | None) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C, or until the terminal closes."""
    chosen = settings.read()
    host = host or chosen.api_host
    opened = (
        listen(host, chosen.api_port if port is None else port) if listener is None else socket.socket(fileno=listener)
    )
    with database_url(chosen) as url:
        flush = exporter.configure("rowcall-api")
        app = create_app(url)
        log().info(LogEvent.API_STARTED, url=url_of(opened, host))
        # Each process sends its own spans.
        Server(app, {**options(chosen, opened), "worker_exit": lambda arbiter, worker: flush()}).run()
