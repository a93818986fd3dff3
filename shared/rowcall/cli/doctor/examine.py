"""The checks of doctor: each function answers one question in one sentence, which names the remedy."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import psycopg2
from psycopg2.errors import InsufficientPrivilege, LockNotAvailable

from rowcall import definitions
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import RowcallError
from rowcall.base.outages import LOCKED, READ_ONLY_REMEDY
from rowcall.base.redaction import redacted
from rowcall.base.settings import Settings
from rowcall.cli.doctor.finding import Finding
from rowcall.cli.doctor.grants import grants
from rowcall.cli.doctor.handover import handover
from rowcall.cli.doctor.health import examine_health, handlers
from rowcall.cli.doctor.messages import alerts, emails, switch, unchecked, unsent
from rowcall.cli.doctor.standby import standby
from rowcall.cli.misspelt import misspelt_settings
from rowcall.cli.terminal.output import shown
from rowcall.job_types import load_catalogue
from rowcall.job_types.catalogue import Catalogue
from rowcall.local_postgres.programs import OLDEST_MAJOR
from rowcall.local_postgres.url import database_url
from rowcall.queue import workers
from rowcall.schema.identity import DATABASE_HEADER, identity_of
from rowcall.schema.revision import REVISION, mismatch, schema_of

# Nothing breaks if the clocks differ, because only the database's clock counts; but people compare log lines.
CLOCK_DIFFERENCE_SECONDS = 2.0

# Indexes whose CREATE INDEX CONCURRENTLY was interrupted or is still running.
UNFINISHED_INDEXES = """
SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = to_regnamespace('rowcall') AND NOT indisvalid ORDER BY 1
"""


def examine(settings: Settings) -> list[Finding]:
    """Run all checks."""
    try:
        catalogue = load_catalogue(settings.app)
    except RowcallError as error:
        return [
            *misspelt(),
            Finding("job types", False, str(error)),
            *_database_findings(settings, None),
            emails(settings),
            api_port(settings),
        ]
    return [
        *misspelt(),
        Finding("job types", True, ", ".join(sorted(catalogue))),
        handlers(catalogue, settings.app),
        *handover(catalogue, settings),
        *_database_findings(settings, catalogue),
        emails(settings),
        alerts(settings, catalogue),
        api_port(settings),
    ]


def misspelt() -> Iterator[Finding]:
    """Find misspelt settings."""
    for sentence in misspelt_settings():
        yield Finding("settings", False, sentence)


def api_port(settings: Settings) -> Finding:
    """Check that the API's port is free, or used by a Rowcall API that serves the same database."""
    host, port = settings.api_host, settings.api_port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if _is_rowcall(host, port):
                return _rowcall_api(settings)
            remedy = "stop the program that uses it, or set ROWCALL_API_PORT to another port (0 picks a free one)"
            return Finding("API port", False, f"{host}:{port} cannot be used ({error.strerror}): {remedy}")
    return Finding("API port", True, f"{host}:{port} is free")


def _is_rowcall(host: str, port: int) -> bool:
    _, body = _asked(host, port, "/healthz")
    return body.strip() == b'{"status":"alive"}'


def _rowcall_api(settings: Settings) -> Finding:
    """Compare the API's database with ours; an older API, or one without its database, does not say which it serves."""
    host, port = settings.api_host, settings.api_port
    answers = f"a Rowcall API answers on {host}:{port}"
    theirs, _ = _asked(host, port, "/readyz")
    ours = None
    with (
        suppress(RowcallError, psycopg2.Error),
        database_url(settings) as url,
        database.internal_transaction(url) as connection,
    ):
        ours = identity_of(connection)
    if not (theirs and ours):
        return Finding("API port", True, answers)
    if theirs == ours:
        return Finding("API port", True, f"{answers}, and serves this database")
    return Finding(
        "API port",
        False,
        f"the Rowcall API on {host}:{port} serves a different database from the one examined here: if you did not"
        " expect that, check DATABASE_URL and ROWCALL_HOME here and where the API was started; otherwise set"
        " ROWCALL_API_PORT to another port",
    )


def _asked(host: str, port: int, path: str) -> tuple[str | None, bytes]:
    """Return the database that an API says it serves, and the start of its response; nothing if it does not respond."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.getheader(DATABASE_HEADER), response.read(100)
    except (OSError, http.client.HTTPException):
        return None, b""
    finally:
        connection.close()


def _database_findings(settings: Settings, catalogue: Catalogue | None) -> Iterator[Finding]:
    """Run the checks of the database, or say why it cannot be reached."""
    try:
        with database_url(settings) as url:
            origin = "DATABASE_URL" if settings.database_url else f"local server, data in {settings.home}"
            with database.internal_transaction(url) as connection:
                yield postgres(connection, origin)
                yield schema(connection)
                yield clock(connection)
                yield unserved(connection, workers.silence(settings.heartbeat))
                yield schedules(connection)
                if not mismatch(schema_of(connection)):
                    yield grants(connection)
                    yield from examine_health(connection, catalogue)
                    yield switch(connection, settings)
                    yield from unsent(connection)
                    if catalogue is not None:
                        yield from unchecked(connection, settings, catalogue)
            yield from standby(url, settings)
            yield pooler(url)
    except (RowcallError, psycopg2.Error) as error:
        told = redacted(str(error)).replace(database.ASK_DOCTOR, "")
        sentence = LOCKED if isinstance(error, LockNotAvailable) else told
        if isinstance(error, InsufficientPrivilege):
            sentence = (
                f"{error.diag.message_primary}: `rowcall migrate --grants` prints the grants that this role needs"
            )
        yield Finding("database", False, " ".join(sentence.split()))


def postgres(connection: PgConnection, origin: str) -> Finding:
    """Check PostgreSQL's version, and that it is writable."""
    version = database.fetch_value(connection, "SELECT current_setting('server_version')")
    if connection.server_version // 10_000 < OLDEST_MAJOR:
        return Finding("PostgreSQL", False, f"{version} ({origin}) is too old: use {OLDEST_MAJOR} or newer")
    if database.fetch_value(connection, "SELECT current_setting('transaction_read_only')") == "on":
        return Finding("PostgreSQL", False, f"{version} ({origin}) is read-only: {READ_ONLY_REMEDY}")
    return Finding("PostgreSQL", True, f"{version} ({origin})")


def schema(connection: PgConnection) -> Finding:
    """Check that the schema is complete and fits this code."""
    found = schema_of(connection)
    problem = mismatch(found)
    if problem is not None or found is None:
        return Finding("schema", False, str(problem))
    unfinished = [row["name"] for row in database.fetch_all(connection, UNFINISHED_INDEXES)]
    if unfinished:
        names = ", ".join(unfinished)
        message = f"the build of {names} was interrupted or is still running: run `rowcall migrate`, which completes it"
        return Finding("schema", False, message)
    if found.revision != REVISION:
        return Finding("schema", True, f"at {found.revision}, newer than this code ({REVISION}), which still fits it")
    return Finding("schema", True, f"at {REVISION}, as this code expects")


def clock(connection: PgConnection) -> Finding:
    """Compare this machine's clock with the database's, which is the one that counts."""
    before = time.time()
    theirs = float(database.fetch_value(connection, "SELECT extract(epoch FROM clock_timestamp())"))
    difference = theirs - (before + time.time()) / 2
    message = (
        f"the database's clock is {abs(difference):.1f} seconds {'ahead of' if difference > 0 else 'behind'}"
        " this machine's"
    )
    if abs(difference) > CLOCK_DIFFERENCE_SECONDS:
        return Finding(
            "clock", False, f"{message}: jobs follow the database's, but times in logs will differ; use NTP on both"
        )
    return Finding("clock", True, message)


def unserved(connection: PgConnection, silence: float) -> Finding:
    """Check that live workers serve all due runs, and take over those of workers that died."""
    if mismatch(schema_of(connection)):
        return Finding("due runs", True, "not checked: migrate the schema first")
    rows, left = workers.unserved(connection, silence), workers.abandoned(connection, silence)
    if not rows and not left:
        return Finding("due runs", True, f"no run has waited for {silence:g} seconds without a worker that serves it")
    parts = []
    if rows:
        named = ", ".join(f"{row['waiting']} of {row['job_type']} in queue {row['queue']}" for row in rows)
        parts.append(f"waiting for more than {silence:g} seconds with no worker that serves them: {named}")
    if left:
        named = ", ".join(
            f"{row['abandoned']} of {row['job_type']} in queue {row['queue']} (since {shown(row['expired_at'])})"
            for row in left
        )
        parts.append(f"running with an expired lease and no worker that takes over: {named}")
    return Finding(
        "due runs",
        False,
        f"{'; '.join(parts)}; start `rowcall worker run` (or `rowcall worker once`, from cron) with the ROWCALL_APP"
        " that has these types, and check its --queues and --types",
    )


def schedules(connection: PgConnection) -> Finding:
    """Check that a worker ticks, and that no nominal time stays unprocessed."""
    if mismatch(schema_of(connection)):
        return Finding("schedules", True, "not checked: migrate the schema first")
    last, left = definitions.last_tick(connection), definitions.undecided(connection)
    never = last["worker"] is None
    since = "" if never else last["ticked_at"].isoformat(sep=" ", timespec="seconds")
    if last["silent"]:
        wake = "start `rowcall worker run`, or run `rowcall worker once` from cron (--print-crontab shows how)"
        return Finding(
            "schedules", False, f"no worker has {'ever ticked' if never else f'ticked since {since}'}: {wake}"
        )
    if left:
        names = ", ".join(f"{row['name']} ({row['job_type']})" for row in left)
        return Finding(
            "schedules",
            False,
            f"overdue and not yet processed: {names}; the workers' ROWCALL_APP must have these types; if a definition"
            ' is invalid, their logs say "schedule broken"',
        )
    return Finding("schedules", True, "no worker has ticked yet" if never else f"last ticked {since}")


def pooler(url: str) -> Finding:
    """Check for a pooler: the server process ids that it reports to its clients are not the real ones."""
    message = "connections reach PostgreSQL directly"
    connections = [database.connect_internal(url, "rowcall doctor") for _ in range(2)]
    try:
        backends = [_backend(connection) for connection in connections]
        if any(real != claimed for real, claimed in backends):
            message = (
                "connections go through a pooler in session mode: everything works, but workers poll instead of being"
                " notified; give workers a direct DATABASE_URL if they should start new runs at once"
            )
        # Both clients are connected, neither is in a transaction, and one server process served both.
        if backends[0][0] == backends[1][0]:
            message = (
                "connections go through a pooler in transaction mode: everything works except LISTEN, so workers poll"
                " instead; give workers a direct DATABASE_URL if they should start new runs at once"
            )
    finally:
        for connection in connections:
            connection.close()
    return Finding("pooler", True, message)


def _backend(connection: PgConnection) -> tuple[int, int]:
    """Return the id of the server process that serves a transaction, and the id that was reported at connect."""
    real = int(database.fetch_value(connection, "SELECT pg_backend_pid()"))
    connection.rollback()
    return real, connection.get_backend_pid()
