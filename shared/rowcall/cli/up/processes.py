"""`rowcall up`: starts everything on one machine, and stops it in reverse order."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg2
import psycopg2.extensions

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.access.page_sessions import make_link
from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.database import Row
from rowcall.base.errors import PortInUse, RowcallError
from rowcall.base.listeners import listen, url_of
from rowcall.base.settings import Settings
from rowcall.cli.up.alone import note_api
from rowcall.cli.up.children import POLL_SECONDS, Child, check_all, start_child, stop_children
from rowcall.cli.up.demo import Asked, Demo, asked, prepared, program, refuse_other_app
from rowcall.cli.up.reports import API, POSTGRES, WORKER, Reports
from rowcall.cli.up.secret_files import read_private, write_private
from rowcall.cli.up.stop import listen_to_signals
from rowcall.definitions import apply_code, clock
from rowcall.job_types import catalogue
from rowcall.local_postgres.url import database_url
from rowcall.queue.views.stats import counted_queue
from rowcall.schema.revision import REVISION, schema_of
from rowcall.status import Status

# Short, because a developer at a terminal is waiting for `up` to stop.
WORKER_GRACE_SECONDS = 2.0
READY_SECONDS = 60.0
FIRST_RUN_SECONDS = 60.0

FIRST_PAYLOAD = {"hello": "world"}

OPERATOR = Operator("rowcall up")

LOOPBACK = "127.0.0.1"

# With DATABASE_URL, the runs of `up` are in this queue, and its worker takes no others.  Its key then has these
# scopes and this lifetime.
QUEUE = "rowcall_up"
OWN_SCOPES = ("enqueue", "read")
OWN_KEY_LIFETIME = timedelta(days=1)
KEY_GRACE = timedelta(hours=24)


@dataclass(frozen=True)
class Running:
    """What `up` has started, for the lines or the view that show it.

    `page` is a one-time link to the operator's page; `moved` says why the API has another port.
    """

    api: str
    page: str
    postgres: str
    version: str
    key: str
    queue: str | None
    first_run: Row
    demo: Asked | None
    children: Sequence[Child]
    moved: str | None = None
    # The value of ROWCALL_APP, which another terminal may not have.
    app: str = ""

    @property
    def link(self) -> str:
        """The token of the link to the page."""
        return self.page.rpartition("/")[2]

    @property
    def before(self) -> list[str]:
        """What to type in a new terminal before the first command."""
        # Not the URL itself, because it may contain a password.
        url = ["export DATABASE_URL=...     # as in this terminal"] if self.queue else []
        return [*url, *([f"export ROWCALL_APP={shlex.quote(self.app)}"] if self.app else [])]

    @property
    def first_step(self) -> str:
        """The command to type first: `types`, or, with a demo or DATABASE_URL, one that enqueues a `noop` run."""
        if self.demo is None and self.queue is None:
            return f"{program()} types"
        queue = f" --queue {self.queue}" if self.queue else ""
        return f"{program()} enqueue noop {shlex.quote(json.dumps(FIRST_PAYLOAD))}{queue}"


@contextmanager
def up(settings: Settings, port: int | None, reports: Reports, is_example: bool) -> Iterator[Running]:
    """Start database, API and worker, wait until a run succeeds, and stop everything at the end of the block.

    `is_example`: the app is the example, because the environment names none.
    """
    with ExitStack() as stack:
        listen_to_signals()
        url = stack.enter_context(database_url(settings, make=True))
        _migrate(settings, url, reports, is_example)
        children: list[Child] = []
        stack.callback(stop_children, children)
        stack.callback(reports.stopping)
        with database.internal_transaction(url) as connection:
            version = str(database.fetch_value(connection, "SELECT current_setting('server_version')"))
        reports.started(POSTGRES, version)
        # Opened here, because another program could take a free port before the API opens it.
        with _listener(settings, port) as listener:
            api = url_of(listener, settings.api_host)
            note_api(settings.home, api)
            moved = _moved(settings, listener, port)
            handed = ["api", "--listener", str(listener.fileno())]
            # On SIGTERM, gunicorn first finishes its requests; on SIGQUIT, it exits at once.
            children.append(start_child(handed, signal.SIGQUIT, reports, _named(settings), [listener.fileno()]))
        demo = prepared(settings, url)
        environment = demo.environment if demo else {}
        if demo:
            children.append(start_child(demo.command, signal.SIGTERM, reports, environment))
        own = QUEUE if settings.database_url else None
        serving = ["--queues", own] if own else []
        worker = ["worker", "run", "--grace", str(WORKER_GRACE_SECONDS), *serving]
        children.append(start_child(worker, signal.SIGTERM, reports, environment))
        _wait_for_api(api, children)
        reports.started(API, api)
        with database.internal_transaction(url) as connection:
            key = _key(connection, settings.home / "api_key", own)
            page = f"{api}/admin/link/{make_link(connection, api_keys.id_of(connection, key))}"
        run = first_run(settings, url, children, own)
        reports.started(WORKER)
        shown = _show(settings, url, demo, children) if demo else None
        yield Running(api, page, url, version, key, own, run, shown, children, moved, os.environ.get("ROWCALL_APP", ""))


def _migrate(settings: Settings, url: str, reports: Reports, is_example: bool) -> None:
    """Migrate the schema and apply the code's definitions; start no process if the schema is current."""
    with database.internal_transaction(url) as connection:
        found = schema_of(connection)
        if found is not None and is_example and not settings.database_url:
            refuse_other_app(connection, settings.home)
        if found is not None and found.revision == REVISION:
            apply_code(connection, catalogue(), OPERATOR)
            return
    errors = reports.errors_of("migrate")
    done = subprocess.run(own_command("migrate"), stdout=subprocess.DEVNULL, stderr=errors, check=False)
    if done.returncode:
        raise RowcallError("the schema could not be migrated; see the error above")


def _listener(settings: Settings, asked: int | None) -> socket.socket:
    """Open the API's port: only the requested one if there is one, else the default or any free one."""
    try:
        return listen(settings.api_host, settings.api_port if asked is None else asked)
    except PortInUse:
        if asked is not None or os.environ.get("ROWCALL_API_PORT"):
            raise
        return listen(settings.api_host, 0)


def _moved(settings: Settings, listener: socket.socket, asked: int | None) -> str | None:
    """Say why the API does not have its usual port; None if it has it, or if a free one was requested."""
    usual = settings.api_port if asked is None else asked
    if usual in (0, listener.getsockname()[1]):
        return None
    return f"not on port {usual}, which is in use; --port chooses another"


def _wait_for_api(url: str, children: Sequence[Child]) -> None:
    """Wait until the API answers; its port accepts connections from the start."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        check_all(children)
        with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=1):  # noqa: S310  # the URL is ours
            return
    raise RowcallError(f"the API did not answer at {url} within {READY_SECONDS:g} seconds")


def _wait_for_port(who: str, host: str, port: int, children: Sequence[Child]) -> None:
    """Wait until the port accepts connections."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        check_all(children)
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            time.sleep(POLL_SECONDS)  # there is no event for the opening of a port
        else:
            return
    raise RowcallError(f"{who} did not answer on {host}:{port} within {READY_SECONDS:g} seconds")


def _named(settings: Settings) -> dict[str, str]:
    """Name the environment `local` on the operator's page, unless it has a name or DATABASE_URL is set."""
    return {} if settings.environment or settings.database_url else {"ROWCALL_ENVIRONMENT": "local"}


def _show(settings: Settings, url: str, demo: Demo, children: Sequence[Child]) -> Asked:
    """Enqueue the demo's runs once the stand-in for external services answers."""
    _wait_for_port("the demo's stand-in for external services", LOOPBACK, demo.port, children)
    return asked(settings, url, demo)


def _key(connection: psycopg2.extensions.connection, file: Path, own: str | None) -> str:
    """Return the previous key if it still works, else a new one; only the file's owner can read it.

    With DATABASE_URL, the key can only enqueue and read, and expires after a day.
    """
    if own and not queue.has_queue(connection, own):
        queue.resume_queue(connection, own, OPERATOR)
    known = read_private(file)
    if known and api_keys.find_caller(connection, known):
        return known
    scopes, expires_at = (OWN_SCOPES, clock(connection) + OWN_KEY_LIFETIME) if own else (api_keys.SCOPES, None)
    # The existing key of this name may be in use with another ROWCALL_HOME, so it gets a grace period.
    key = api_keys.create_key(connection, "rowcall up", scopes, OPERATOR, expires_at, KEY_GRACE)
    write_private(file, key)
    return key


def first_run(settings: Settings, url: str, children: Sequence[Child], own: str | None) -> Row:
    """Enqueue one run, and wait until it succeeds."""
    with database.internal_transaction(url) as connection:
        chosen = own or (QUEUE if _is_held_up(connection) else None)
        run_id = queue.enqueue(connection, "noop", FIRST_PAYLOAD, queue=chosen, created_by="rowcall up").run_id
    until = time.monotonic() + FIRST_RUN_SECONDS
    while time.monotonic() < until:
        check_all(children)
        with database.internal_transaction(url) as connection:
            run = queue.get_run(connection, run_id)
        if run["status"] == Status.SUCCEEDED:
            return run
        time.sleep(POLL_SECONDS)  # no notification is sent when a run ends
    with database.internal_transaction(url) as connection:
        why = queue.explain(connection, run_id, catalogue().limits, settings.heartbeat, catalogue()).message
    raise RowcallError(f"the first run, {run_id}, is {run['status']} after {FIRST_RUN_SECONDS:g} seconds: {why}")


def _is_held_up(connection: psycopg2.extensions.connection) -> bool:
    """Whether an operator has paused the first run's own queue, or given it the limit 0, and may need the page now."""
    types = catalogue()
    found = counted_queue(connection, types["noop"].queue, types.queues, types.limits)
    return found["paused_at"] is not None or found["max_running"] == 0
