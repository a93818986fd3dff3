"""`rowcall doctor`: what has gone wrong lately, and who holds vacuum back."""

from __future__ import annotations

import json
import signal
import struct
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from psycopg import pq
from psycopg.pq.abc import PGconn
from psycopg2.extensions import make_dsn

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.cli.doctor.health import bloat, holding
from rowcall.queue import limit_queue, pause_queue
from rowcall.status import Event, Status
from tests.support.doctor import well_kept
from tests.support.processes import rowcall, wait_until
from tests.support.rows import run_in
from tests.support.server import own_server
from tests.support.terminal import on_terminal


@pytest.fixture
def well(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """An environment in which doctor finds nothing to mend."""
    return well_kept({**environment, "DATABASE_URL": fresh_url})


def wrong(environment: dict[str, str]) -> dict[str, Any]:
    """Subject and sentence of what doctor finds wrong; it ends with 1 if there is any."""
    examined = rowcall(environment, "doctor", "--json")
    assert "Traceback" not in examined.stderr
    found = {one["subject"]: one["message"] for one in json.loads(examined.stdout)["findings"] if not one["good"]}
    assert examined.returncode == (1 if found else 0)
    return found


def test_runs_that_died_lately(well: dict[str, str], fresh_url: str) -> None:
    assert wrong(well) == {}
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.DEAD)
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)"
            f" VALUES (%(id)s, 1, 1, '{Event.GIVE_UP}', 'w', now())",
            {"id": run["id"]},
        )
        another = run_in(connection, Status.DEAD)
    told = wrong(well)["dead runs"]
    assert told.startswith("1 of noop died in the last day: `rowcall runs list --status dead`")
    assert told.endswith("`rowcall runs retry ID` runs one again")
    with database.transaction(fresh_url) as connection:
        died = "INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, ended_at)"
        for _ in range(9):
            late = {"id": run_in(connection, Status.DEAD)["id"]}
            database.fetch_all(connection, f"{died} VALUES (%(id)s, 1, 1, '{Event.GIVE_UP}', 'w', now())", late)
    many = "`rowcall runs retry --status dead --type noop --canary` retries many: one run first, and the others after"
    assert wrong(well)["dead runs"].endswith(
        f"`rowcall runs retry ID` runs one again, and {many} `rowcall operations continue`"
    )
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
            " SELECT run_id || ' ' || number, run_id, 1, '', CASE number WHEN 3 THEN 'intent' ELSE 'unknown' END"
            " FROM unnest(%(run_ids)s::bigint[]) AS run_id, generate_series(1, 3) AS number",
            {"run_ids": [run["id"], another["id"]]},
        )
    assert f"; first resolve the unknown effects of runs {run['id']}, {another['id']} (" in wrong(well)["dead runs"]
    # Its command is longer than a line of this terminal, which would break it within a word.
    lines = on_terminal(well, "doctor", columns=40)
    words = [word for line in lines for word in line.split()]
    assert "unknown`" in words
    assert [line for line in lines if "unknown`" in line and len(line) > 40] == []


def test_due_runs_in_a_paused_queue(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        pause_queue(connection, "mail", Operator("tests"))
        pause_queue(connection, "empty", Operator("tests"))
        run_in(connection, Status.QUEUED, queue="'mail'", run_at="now() + interval '1 hour'")
    assert wrong(well) == {}
    with database.transaction(fresh_url) as connection:
        for _ in range(2):
            run_in(connection, Status.QUEUED, queue="'mail'")
    told = wrong(well)["paused queues"]
    assert told.startswith("due runs are waiting: 2 in queue mail, which has been paused since 20")
    assert told.endswith(" (`rowcall queues resume mail`)")


def test_due_runs_in_a_queue_that_is_limited_to_none(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        limit_queue(connection, "mail", 0, Operator("tests"))
        run_in(connection, Status.QUEUED, queue="'mail'")
    told = wrong(well)["paused queues"]
    assert "1 in queue mail, which is limited to 0 running runs (`rowcall queues limit mail --none`)" in told


@pytest.mark.parametrize(
    ("state", "subject", "sentence"),
    [
        ("unknown", "effects", "unknown outcomes: 1 of sent_emails; "),
        ("intent", "open effects", "effects of dead or cancelled runs (run "),
    ],
)
def test_effects_that_wait_for_an_operator(
    well: dict[str, str], fresh_url: str, state: str, subject: str, sentence: str
) -> None:
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.DEAD)
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
            " VALUES ('m', %(id)s, 1, '', %(state)s)",
            {"id": run["id"], "state": state},
        )
    assert wrong(well)[subject].startswith(sentence)


def test_a_definition_that_the_code_declares_and_nobody_has_applied(well: dict[str, str], fresh_url: str) -> None:
    assert wrong(well) == {}
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.job_definitions WHERE name = 'prune_runs'")
    assert wrong(well)["definitions"] == (
        "the code declares prune_runs, but the database does not have it: run `rowcall migrate`, or `rowcall"
        " definitions apply`"
    )
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.job_definitions WHERE name = 'expire_keys'")
    assert wrong(well)["definitions"].startswith(
        "the code declares expire_keys, prune_runs, but the database does not have them: "
    )


def test_a_definition_that_cannot_be_decided(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus'")
    said = wrong(well)["definitions"]
    assert "prune_runs: " in said
    assert "Mars/Olympus" in said


@pytest.mark.parametrize(
    ("handlers", "sentence"),
    [
        ("import no_such_package\n", "no_such_package"),
        ("1 / 0\n", "division by zero"),
        ("raise SystemExit(0)\n", "SystemExit: 0"),
        ("", "job type 'lonely' has no handler"),
    ],
)
def test_handlers_that_cannot_be_imported(well: dict[str, str], tmp_path: Path, handlers: str, sentence: str) -> None:
    app = tmp_path / "lonely"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "job_types.py").write_text(
        "from marshmallow import Schema\nfrom rowcall import JobType\nLONELY = JobType('lonely', schema=Schema)\n"
    )
    (app / "handlers.py").write_text(handlers)
    said = wrong({**well, "ROWCALL_APP": "lonely", "PYTHONPATH": str(tmp_path)})
    assert sentence in said["handlers"]


def test_a_transaction_that_holds_vacuum_back_is_named_with_the_command_that_ends_it(fresh_url: str) -> None:
    sleeper = database.connect(fresh_url)
    sleeper.set_session(isolation_level="REPEATABLE READ")
    database.fetch_all(sleeper, "SELECT FROM rowcall.job_runs")
    with database.transaction(fresh_url) as connection:
        assert holding(connection).good, "a short one does not count"
        found = holding(connection, older=timedelta(0))
        pid = sleeper.get_backend_pid()
        assert not found.good
        assert f"session {pid} of " in found.message
        assert f"`SELECT pg_terminate_backend({pid})`" in found.message
    sleeper.close()


def test_a_transaction_that_has_written_and_is_idle_holds_vacuum_back_without_a_snapshot(fresh_url: str) -> None:
    sleeper = database.connect(fresh_url)
    database.fetch_all(sleeper, "INSERT INTO rowcall.queues (name) VALUES ('slow')")
    with database.transaction(fresh_url) as connection:
        assert holding(connection).good, "a short one does not count"
        found = holding(connection, older=timedelta(0))
        assert not found.good
        assert f"session {sleeper.get_backend_pid()} of " in found.message
    sleeper.close()


def test_a_standby_that_holds_vacuum_back_is_named_with_and_without_a_slot(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        owner = database.connect(server.url)
        owner.autocommit = True
        database.fetch_all(owner, "SELECT pg_create_physical_replication_slot('near', true)")
        for slot, told in (
            ("", "standby 'east' of"),
            ("SLOT near ", "replication slot 'near' has held vacuum back"),
        ):
            standby = standby_with_feedback(owner, server.url, slot)
            wait_until(partial(said_by, owner, told), f"doctor says: {told}")
            assert holding(owner).good, "a young one does not count"
            assert "end the oldest query on" in holding(owner, xids=-1).message
            standby.finish()
            wait_until(lambda: not database.fetch_value(owner, "SELECT count(*) FROM pg_stat_replication"), "it left")
        assert "`SELECT pg_drop_replication_slot('near')` ends it" in holding(owner, xids=-1).message
        owner.close()


def standby_with_feedback(owner: PgConnection, url: str, slot: str) -> PGconn:
    """Connect as a standby does, and report the oldest transaction that its queries may still need."""
    standby = pq.PGconn.connect(make_dsn(url, replication="true", application_name="east").encode())
    start = database.fetch_value(owner, "SELECT pg_current_wal_lsn()")
    assert standby.exec_(f"START_REPLICATION {slot}PHYSICAL {start}".encode()).status == pq.ExecStatus.COPY_BOTH
    oldest = int(database.fetch_value(owner, "SELECT txid_current()"))
    standby.put_copy_data(b"h" + struct.pack("!qIIII", 0, oldest, 0, 0, 0))
    standby.flush()
    return standby


def said_by(connection: PgConnection, words: str) -> bool:
    """Whether doctor names this if everything counts as old."""
    return words in holding(connection, older=timedelta(0), xids=-1).message


def test_what_no_session_shows_and_holds_vacuum_back_too(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        owner = database.connect(server.url)
        owner.autocommit = True
        database.fetch_all(owner, "ALTER SYSTEM SET wal_level = logical")
        database.fetch_all(owner, "ALTER SYSTEM SET max_prepared_transactions = 2")
        owner.close()
        server.restart(signal.SIGINT)
        with database.transaction(server.url) as connection:
            database.fetch_all(connection, "SELECT pg_create_logical_replication_slot('reports', 'pgoutput')")
        left = database.connect(server.url)
        database.fetch_all(left, "SELECT pg_current_xact_id()")
        database.fetch_all(left, "PREPARE TRANSACTION 'order-7'")
        left.close()
        with database.transaction(server.url) as connection:
            assert holding(connection).good, "new ones do not count"
            found = holding(connection, older=timedelta(0), xids=0)
            prepared, slot = found.message.split("; ")
        assert not found.good
        assert "prepared transaction 'order-7' has held vacuum back" in prepared
        assert "`ROLLBACK PREPARED 'order-7'`" in prepared
        assert slot.startswith("replication slot 'reports' has held vacuum back, so")
        # The commands do what they are named for.
        owner = database.connect(server.url)
        owner.autocommit = True
        for told in (prepared, slot):
            database.fetch_all(owner, told.split("`")[1])
        assert holding(owner, older=timedelta(0), xids=0).good
        owner.close()


def test_a_table_that_vacuum_does_not_keep_up_with(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "ALTER TABLE rowcall.queues SET (autovacuum_enabled = false)")
        database.fetch_all(
            connection, "INSERT INTO rowcall.queues (name) SELECT 'q' || n FROM generate_series(1, 60000) AS n"
        )
        assert bloat(connection).good
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.queues")
        database.fetch_all(connection, "SELECT pg_stat_force_next_flush()")
    with database.transaction(fresh_url) as connection:
        assert "queues (60,000 dead rows, 0 live)" in bloat(connection).message
