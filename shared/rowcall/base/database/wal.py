"""Positions in the write-ahead log: what a leader has written, and what a hot standby has replayed.

A position is the number of bytes since the cluster's first, so that positions can be compared, also by clients.
"""

from __future__ import annotations

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_all, fetch_one

# Which database of which cluster this is: the same on a leader and its standbys, and on no other server.
DATABASE = """(SELECT system_identifier FROM pg_control_system())
    || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"""

# Where the next record will be written.  Just after a page has been filled, that is behind the header of the next page
# (24 bytes, or 40 in the first page of a file), but a standby reports the end of the last record, before that header.
LEADER = f"""
SELECT at - CASE
        WHEN mod(at, pg_size_bytes(current_setting('wal_segment_size'))) = 40 THEN 40
        WHEN mod(at, current_setting('wal_block_size')::integer) = 24 THEN 24
        ELSE 0
    END AS position, {DATABASE} AS database,
    CAST(CAST('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS bit(32)) AS integer) AS timeline
FROM CAST(pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bigint) AS at
"""

# A leader may keep what open transactions have logged in memory until something is committed, and a standby cannot
# replay it.  A transaction with a number of its own makes the leader write all of that out when it ends.
WRITE_OUT = "SELECT pg_current_xact_id()"

# A standby that has not followed its leader to a new timeline goes on with a history that the new leader does not have.
# Without the rights of pg_read_all_stats, received_tli is NULL; then only the last restart point tells the timeline.
STANDBY = f"""
SELECT pg_is_in_recovery() AS in_recovery, {DATABASE} AS database,
    greatest((SELECT timeline_id FROM pg_control_checkpoint()), (SELECT received_tli FROM pg_stat_wal_receiver))
        AS timeline,
    CAST(pg_last_wal_replay_lsn() - '0/0'::pg_lsn AS bigint) AS position,
    extract(epoch FROM now() - pg_last_xact_replay_timestamp()) AS seconds_since_replay
"""

# A position that no standby reaches.
UNREACHABLE = LARGEST_ID


def leader_position(connection: Connection) -> Row:
    """Return the position up to which this leader has written, its timeline, and which database it is."""
    found = fetch_one(connection, LEADER)
    assert found is not None
    return found


def write_out(connection: Connection) -> None:
    """Let the leader write its log out when this transaction ends, so that the standby can replay all of it."""
    fetch_all(connection, WRITE_OUT)


def standby_position(connection: Connection) -> Row:
    """Return the position up to which this standby has replayed, and whether it is one, of which database.

    The last replayed transaction may be old although nothing is missing: perhaps nothing has been written since.
    """
    found = fetch_one(connection, STANDBY)
    assert found is not None
    return found
