"""The archive table while others prune, drop and erase: nobody fails, and nothing is erased only in part."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import ArchiveBusy
from rowcall.queue.retention import archive
from rowcall.queue.retention.erase import ERASE, erase
from rowcall.queue.retention.prune import BEGINNING, Retention, prune_page, read_page
from rowcall.status import FINAL, Status
from tests.support.locks import wait_for_a_waiting_session
from tests.support.rows import run_in

OPERATOR = Operator("test")
WEEK = Retention(dict.fromkeys(FINAL, 7), {})

# Waits between its snapshot and its locks, as a slow statement does.
SLOW_ERASE = ERASE.replace(
    "FROM seen JOIN",
    "FROM (SELECT seen.* FROM seen CROSS JOIN (SELECT pg_advisory_xact_lock(4711)) AS waited OFFSET 0) AS seen JOIN",
)


def old(url: str, **columns: str) -> int:
    """Insert a run that ended in May 2020."""
    moment = dict.fromkeys(("created_at", "finished_at", "updated_at"), "'2020-05-10 12:00+00'")
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, Status.DEAD, **moment, **columns)["id"]
    return run_id


def prune(connection: PgConnection) -> int:
    """Archive what is due, without a commit."""
    page = read_page(connection, WEEK, BEGINNING, 100, bare=False)
    assert page is not None
    return prune_page(connection, page, to_table=True)["archived"]


def pruned(url: str) -> int:
    """Archive what is due."""
    with database.transaction(url) as connection:
        return prune(connection)


def test_a_run_that_is_archived_while_it_is_erased_is_not_said_to_be_erased(fresh_url: str) -> None:
    run_id = old(fresh_url, idempotency_key="'k'", payload="'{\"user\": 7}'")
    values = {"run_ids": [run_id], "who": "test", "request_id": None}

    def erasing() -> list[int]:
        with database.transaction(fresh_url) as connection:
            return [row["id"] for row in fetch_all(connection, SLOW_ERASE, values)]

    assert ERASE != SLOW_ERASE
    with ThreadPoolExecutor(1) as thread, database.transaction(fresh_url) as holder:
        fetch_all(holder, "SELECT pg_advisory_xact_lock(4711)")
        slow = thread.submit(erasing)
        wait_for_a_waiting_session(fresh_url)
        assert pruned(fresh_url) == 1
        holder.rollback()
        assert slow.result() == []
    with database.transaction(fresh_url) as connection:
        assert erase(connection, [run_id], OPERATOR) == [run_id]
        assert queue.get_run(connection, run_id)["payload"] == {}


def test_two_that_need_the_same_month_make_it_once(fresh_url: str) -> None:
    first, second = old(fresh_url), old(fresh_url)

    def archiving(run_id: int) -> None:
        with database.transaction(fresh_url) as connection:
            archive.make_months(connection, [run_id])

    with ThreadPoolExecutor(1) as thread, database.transaction(fresh_url) as connection:
        archive.make_months(connection, [first])
        waiting = thread.submit(archiving, second)
        wait_for_a_waiting_session(fresh_url)
        connection.commit()
        waiting.result()
    assert pruned(fresh_url) == 2


def test_who_archives_waits_for_who_drops_the_month_and_makes_it_again(fresh_url: str) -> None:
    old(fresh_url)
    pruned(fresh_url)
    run_id = old(fresh_url)
    with ThreadPoolExecutor(1) as thread, database.transaction(fresh_url) as connection:
        [month] = archive.months(connection)
        archive.drop_month(connection, month["month"])
        waiting = thread.submit(pruned, fresh_url)
        wait_for_a_waiting_session(fresh_url)
        connection.commit()
        assert waiting.result() == 1
    with database.transaction(fresh_url) as connection:
        assert queue.get_run(connection, run_id)["archived"] is True


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_month_that_gets_more_runs_after_its_export_is_not_dropped(fresh_url: str, isolation: str) -> None:
    old(fresh_url)
    pruned(fresh_url)
    later = old(fresh_url)

    def dropping() -> None:
        with closing(database.connect_internal(fresh_url)) as connection:
            connection.set_session(isolation_level=isolation)
            with database.committed(connection):
                archive.drop_month(connection, date(2020, 5, 1), expected=1)

    with ThreadPoolExecutor(1) as thread, database.transaction(fresh_url) as connection:
        assert prune(connection) == 1
        waiting = thread.submit(dropping)
        wait_for_a_waiting_session(fresh_url)
        connection.commit()
        with pytest.raises(ArchiveBusy):
            waiting.result()
    with database.transaction(fresh_url) as connection:
        assert queue.get_run(connection, later)["archived"] is True
