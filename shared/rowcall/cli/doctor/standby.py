"""Whether the standby of ROWCALL_READ_URL can answer reads in place of the leader."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg2

from rowcall.base import database
from rowcall.base.database import PgConnection, Row
from rowcall.base.database.wal import leader_position, standby_position, write_out
from rowcall.base.errors import RowcallError
from rowcall.base.redaction import redacted
from rowcall.base.settings import Settings
from rowcall.cli.doctor.finding import Finding
from rowcall.schema.revision import Schema, check_readable, schema_of

# How long a standby may take to replay what the leader has just written.
PATIENCE_SECONDS = 2.0
LOOK_SECONDS = 0.05

SO_LEADER = "meanwhile, the API reads from the leader"


def standby(leader_url: str, settings: Settings) -> Iterator[Finding]:
    """Check the standby, if there is one: whose it is, how old, and its schema."""
    if not settings.read_url:
        return
    with database.internal_transaction(leader_url) as leader:
        written, schema = leader_position(leader), schema_of(leader)
        write_out(leader)
    try:
        with database.internal_transaction(settings.read_url) as connection:
            yield _finding(connection, written, schema)
    except (RowcallError, psycopg2.Error) as error:
        told = redacted(str(error)).replace(database.ASK_DOCTOR, "").replace("DATABASE_URL", "ROWCALL_READ_URL")
        sentence = " ".join(told.split())
        yield Finding("standby", False, f"{sentence}; {SO_LEADER}")


def _finding(connection: PgConnection, written: Row, schema: Schema | None) -> Finding:
    found = standby_position(connection)
    if not found["in_recovery"]:
        return Finding(
            "standby",
            False,
            "ROWCALL_READ_URL leads to a server that is not a standby: it was promoted, or the URL is wrong; add"
            f" `target_session_attrs=standby` to a URL with several hosts; {SO_LEADER}",
        )
    if found["database"] != written["database"]:
        return Finding(
            "standby",
            False,
            "ROWCALL_READ_URL leads to a standby of another database than DATABASE_URL: correct one of them;"
            f" {SO_LEADER}",
        )
    if found["timeline"] != written["timeline"]:
        return Finding(
            "standby",
            False,
            f"the standby is on timeline {found['timeline']} and the leader on {written['timeline']}: after a failover,"
            " either it has had no restart point yet (wait for checkpoint_timeout, or grant pg_read_all_stats to the"
            f" role), or it follows the former leader: see its primary_conninfo; {SO_LEADER}",
        )
    behind = _left_to_replay(connection, written["position"])
    if behind:
        migration = "" if schema_of(connection) == schema else ", among them the last migration"
        return Finding(
            "standby",
            False,
            f"{PATIENCE_SECONDS:g} s were not enough for the standby to replay what the leader had written:"
            f" {behind:,} bytes are left{migration}{_last_replayed(found)}; see on the standby whether it receives WAL"
            " (pg_stat_wal_receiver), and whether replay is paused (pg_get_wal_replay_pause_state()); while it is more"
            " than 10 s behind, the API reads from the leader",
        )
    check_readable(connection)
    return Finding("standby", True, "it has replayed all that the leader had written, and can answer reads")


def _left_to_replay(connection: PgConnection, position: int) -> int:
    """Wait a little for the standby; return how many bytes it has not replayed."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        left = max(0, int(position - standby_position(connection)["position"]))
        if not left or time.monotonic() > until:
            return left
        time.sleep(LOOK_SECONDS)  # nothing announces what a standby has replayed


def _last_replayed(found: Row) -> str:
    if found["seconds_since_replay"] is None:
        return ""
    return f", and its last transaction is {float(found['seconds_since_replay']):.0f} s old"
