"""Workers count how attempts end: nothing is lost when they stop, and nothing is counted twice when they die."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from rowcall import __version__
from tests.support.processes import read_until, rowcall, running, wait_until
from tests.support.shop import Shop

ENDS = ("succeeded", "failed", "dead", "cancelled", "snoozed", "released")
SUMS = ", ".join(f"coalesce(sum({end}), 0)::integer AS {end}" for end in ENDS)
HISTOGRAM = "(SELECT coalesce(sum(n), 0)::integer FROM rowcall.run_counts, unnest({}) AS n) AS {}"
RUNS = 300

# So long that no heartbeat comes, if the worker serves no type with a shorter lease of its own.
NO_HEARTBEAT = {"ROWCALL_HEARTBEAT": "600", "ROWCALL_LEASE": "1800"}
SILENT = ("worker", "run", "--types", "shop_clock,shop_slow")


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    """Return the shop, on a database for this test."""
    return Shop(environment, worker_url)


def ends(shop: Shop) -> dict[str, int]:
    """Return what is counted, without zeros."""
    [row] = shop.sql(f"SELECT {SUMS} FROM rowcall.run_counts")
    return {end: number for end, number in row.items() if number}


def times(shop: Shop) -> dict[str, int]:
    """Return how many times are counted."""
    [row] = shop.sql(f"SELECT {HISTOGRAM.format('waiting', 'waiting')}, {HISTOGRAM.format('running', 'running')}")
    return row


def once(shop: Shop, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    done = rowcall({**shop.environment, **more}, "worker", "once", *options)
    assert done.returncode == 0, done.stderr
    return done


def test_the_counts_of_a_drain_are_its_runs(shop: Shop) -> None:
    shop.ask_many("shop_pack", [{"order_id": number} for number in range(RUNS)])
    shop.ask_many("shop_pack", [{"ends": "with a log"}, {"ends": "badly"}, {"ends": "for good"}], max_attempts=2)
    shop.ask_many("shop_pack", [{"ends": "not yet"}, {"ends": "later"}])
    shop.ask_many("shop_isolated_pack", [{}, {"ends": "for good"}])
    once(shop, **NO_HEARTBEAT)
    assert ends(shop) == {"succeeded": RUNS + 2, "failed": 3, "dead": 3, "snoozed": 1}
    [runs] = shop.sql("SELECT count(*) AS ended FROM rowcall.job_runs WHERE status = 'succeeded'")
    assert runs["ended"] == RUNS + 2
    assert times(shop) == {"waiting": RUNS + 9, "running": RUNS + 9}


def test_success_in_the_handlers_own_transaction_counts_once(shop: Shop) -> None:
    shop.ask_many("shop_book", [{"order_id": number} for number in range(3)])
    once(shop)
    assert ends(shop) == {"succeeded": 3}


def test_minutes_are_those_of_the_databases_clock(shop: Shop) -> None:
    shop.ask("shop_pack")
    once(shop)
    [row] = shop.sql(
        "SELECT bool_and(minute = date_trunc('minute', finished_at)"
        " OR minute = date_trunc('minute', finished_at + interval '30 seconds')) AS same"
        " FROM rowcall.run_counts, rowcall.job_runs"
    )
    assert row["same"]


def test_waiting_begins_when_the_run_is_due(shop: Shop) -> None:
    shop.sql("INSERT INTO rowcall.job_runs (job_type, run_at) VALUES ('noop', now() - interval '200 seconds')")
    once(shop)
    [row] = shop.sql("SELECT waiting FROM rowcall.run_counts")
    assert row["waiting"].index(1) == 15  # between 120 and 300 seconds


def test_a_worker_that_stops_writes_the_rest(shop: Shop) -> None:
    with running({**shop.environment, **NO_HEARTBEAT}, *SILENT) as worker:
        shop.wait(shop.ask("shop_slow"), "running")
        shop.ask_many("shop_clock", [{"order_id": number} for number in range(5)])
        shop.wait_for_all(5)
        assert ends(shop) == {}
        worker.send_signal(signal.SIGTERM)
        read_until(worker, "worker stopped")
        assert ends(shop)["succeeded"] == 5


def test_a_run_that_a_stopping_worker_gives_back_is_released(shop: Shop) -> None:
    with running({**shop.environment, "ROWCALL_GRACE": "0"}, "worker", "run") as worker:
        begun = shop.ask("shop_pack", ends="never")
        wait_until(lambda: shop.row(begun)["progress"] is not None, "the handler has begun")
        worker.send_signal(signal.SIGTERM)
        read_until(worker, "worker stopped")
    assert ends(shop) == {"released": 1}


def test_a_killed_worker_loses_what_it_has_not_written_and_no_more(shop: Shop) -> None:
    shop.ask_many("shop_pack", [{"order_id": number} for number in range(5)])
    with running(shop.environment, "worker", "run") as worker:
        wait_until(lambda: ends(shop) == {"succeeded": 5}, "the heartbeat has written the counts")
        worker.kill()
        worker.wait()
    with running({**shop.environment, **NO_HEARTBEAT}, *SILENT) as worker:
        shop.ask_many("shop_clock", [{"order_id": number} for number in range(3)])
        shop.wait_for_all(8)
        worker.kill()
        worker.wait()
    shop.ask_many("shop_pack", [{"order_id": number} for number in range(2)])
    once(shop)
    assert ends(shop) == {"succeeded": 7}


def test_an_idle_worker_writes_no_counts(shop: Shop) -> None:
    once(shop)
    assert shop.sql("SELECT minute FROM rowcall.run_counts") == []


def test_the_first_worker_of_a_version_marks_a_deploy(shop: Shop) -> None:
    once(shop)
    seen: list[dict[str, Any]] = shop.sql("SELECT * FROM rowcall.worker_versions")
    once(shop)
    assert shop.sql("SELECT * FROM rowcall.worker_versions") == seen
    assert [row["version"] for row in seen] == [__version__]


def test_a_database_that_refuses_the_counts_stops_no_work(shop: Shop) -> None:
    shop.sql("DROP TABLE rowcall.run_counts")
    shop.ask_many("shop_pack", [{"order_id": number} for number in range(3)])
    done = once(shop)
    assert (
        done.stderr.count("counts refused by the database") + done.stdout.count("counts refused by the database") == 1
    )
    assert shop.count("succeeded") == 3
