"""What doctor looks at: one function a question, each answering in one sentence with its remedy."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg2

from rowcall import definitions
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import RowcallError
from rowcall.base.redaction import redacted
from rowcall.base.settings import Settings
from rowcall.job_types import load_catalogue
from rowcall.local_postgres import database_url
from rowcall.queue import workers
from rowcall.schema.revision import REVISION, mismatch, schema_of

# Nothing breaks when the clocks differ, because only the database's counts; but people compare log lines.
CLOCK_DIFFERENCE_SECONDS = 2.0

# The oldest PostgreSQL whose features the queue's SQL uses, and the oldest that its makers still mend.
OLDEST_POSTGRES = 140000

# What CREATE INDEX CONCURRENTLY leaves behind when it is interrupted, or has not ended yet.
UNFINISHED_INDEXES = """
SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = to_regnamespace('rowcall') AND NOT indisvalid ORDER BY 1
"""


@dataclass(frozen=True)
class Finding:
    """One answer: about what, whether all is well, and in words."""

    subject: str
    good: bool
    told: str


def examine(settings: Settings) -> list[Finding]:
    """Everything doctor can tell about this installation."""
    return [job_types(settings), *_database_findings(settings), api_port(settings)]


def job_types(settings: Settings) -> Finding:
    """Whether all job types are declared well."""
    try:
        known = load_catalogue(settings.app)
    except RowcallError as error:
        return Finding("job types", False, str(error))
    return Finding("job types", True, ", ".join(sorted(known)))


def api_port(settings: Settings) -> Finding:
    """Whether the API's port is free, or has our own API on it."""
    host, port = settings.api_host, settings.api_port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if _is_rowcall(host, port):
                return Finding("API port", True, f"a Rowcall API answers on {host}:{port}")
            remedy = "stop the program that has it, or set ROWCALL_API_PORT to another (0 takes a free one)"
            return Finding("API port", False, f"{host}:{port} cannot be used ({error.strerror}): {remedy}")
    return Finding("API port", True, f"{host}:{port} is free")


def _is_rowcall(host: str, port: int) -> bool:
    asked = http.client.HTTPConnection(host, port, timeout=2)
    try:
        asked.request("GET", "/healthz")
        return asked.getresponse().read(100).strip() == b'{"status":"alive"}'
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def _database_findings(settings: Settings) -> Iterator[Finding]:
    """The database's answers; where it cannot be reached, the reason instead of them."""
    try:
        with database_url(settings) as url:
            origin = "DATABASE_URL" if settings.database_url else f"embedded, data in {settings.home}"
            with database.internal_transaction(url) as connection:
                yield postgres(connection, origin)
                yield schema(connection)
                yield clock(connection)
                yield unserved(connection, workers.silence(settings.heartbeat))
                yield schedules(connection)
            yield pooler(url)
    except (RowcallError, psycopg2.Error) as error:
        yield Finding("database", False, " ".join(redacted(str(error)).split()))


def postgres(connection: PgConnection, origin: str) -> Finding:
    """Which PostgreSQL, and where it came from."""
    version = database.fetch_value(connection, "SELECT current_setting('server_version')")
    if connection.server_version < OLDEST_POSTGRES:
        return Finding("PostgreSQL", False, f"{version} ({origin}) is too old: use 14 or newer")
    return Finding("PostgreSQL", True, f"{version} ({origin})")


def schema(connection: PgConnection) -> Finding:
    """Whether this code can go on with the schema, and all of it is there."""
    found = schema_of(connection)
    problem = mismatch(found)
    if problem is not None or found is None:
        return Finding("schema", False, str(problem))
    unfinished = [row["name"] for row in database.fetch_all(connection, UNFINISHED_INDEXES)]
    if unfinished:
        told = f"the build of {', '.join(unfinished)} was interrupted: run `rowcall migrate`, which builds it anew"
        return Finding("schema", False, told)
    if found.revision != REVISION:
        return Finding("schema", True, f"at {found.revision}, newer than this code ({REVISION}), which still fits it")
    return Finding("schema", True, f"at {REVISION}, as this code needs it")


def clock(connection: PgConnection) -> Finding:
    """How far this machine's clock is from the database's, which is the one that counts."""
    before = time.time()
    theirs = float(database.fetch_value(connection, "SELECT extract(epoch FROM clock_timestamp())"))
    difference = theirs - (before + time.time()) / 2
    told = (
        f"the database's is {abs(difference):.1f} seconds {'ahead of' if difference > 0 else 'behind'} this machine's"
    )
    if abs(difference) > CLOCK_DIFFERENCE_SECONDS:
        return Finding(
            "clock", False, f"{told}: jobs keep to the database's, but log times will not match; let NTP set both"
        )
    return Finding("clock", True, told)


def unserved(connection: PgConnection, silence: float) -> Finding:
    """Whether something is due that nobody takes."""
    if mismatch(schema_of(connection)):
        return Finding("due runs", True, "not looked at: the schema comes first")
    found = workers.unserved(connection, silence)
    if not found:
        return Finding("due runs", True, "no run waits for a worker that is not there")
    told = ", ".join(f"{row['waiting']} of {row['job_type']} in queue {row['queue']}" for row in found)
    return Finding(
        "due runs",
        False,
        f"waiting for more than {silence:g} seconds with no worker that serves them: {told};"
        " start `rowcall worker run` (or once, from cron) with the ROWCALL_APP that knows these types, and look at its"
        " --queues and --types",
    )


def schedules(connection: PgConnection) -> Finding:
    """Whether somebody ticks the schedules, and whether each of them is decided."""
    if mismatch(schema_of(connection)):
        return Finding("schedules", True, "not looked at: the schema comes first")
    last, left = definitions.last_tick(connection), definitions.undecided(connection)
    since = last["ticked_at"].isoformat(sep=" ", timespec="seconds")
    if last["silent"]:
        wake = "start `rowcall worker run`, or let cron wake `rowcall worker once` (--print-crontab tells how)"
        return Finding("schedules", False, f"nobody has ticked since {since}: {wake}")
    if left:
        names = ", ".join(f"{row['name']} ({row['job_type']})" for row in left)
        return Finding(
            "schedules",
            False,
            f"due, and no tick decides them: {names}; the workers' ROWCALL_APP must know these types, and their logs"
            ' say "schedule broken" where a definition cannot be used',
        )
    return Finding("schedules", True, f"last ticked {since}")


def pooler(url: str) -> Finding:
    """Whether something stands between: a pooler invents the process id that it tells its clients."""
    told = "connections reach PostgreSQL directly"
    connections = [database.connect_internal(url, "rowcall doctor") for _ in range(2)]
    try:
        seen = [_backend(connection) for connection in connections]
        if any(real != claimed for real, claimed in seen):
            told = "a pooler in session mode is between: everything works"
        # Both clients are connected, neither is in a transaction, and one server process served both.
        if seen[0][0] == seen[1][0]:
            told = (
                "a pooler in transaction mode is between: everything works, but workers hear no LISTEN and poll"
                " instead; give workers a direct DATABASE_URL to be woken at once"
            )
    finally:
        for connection in connections:
            connection.close()
    return Finding("pooler", True, told)


def _backend(connection: PgConnection) -> tuple[int, int]:
    """The process that serves one transaction, and the one this connection was promised."""
    real = int(database.fetch_value(connection, "SELECT pg_backend_pid()"))
    connection.rollback()
    return real, connection.get_backend_pid()
