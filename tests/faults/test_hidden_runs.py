"""Workers do all runs, even those behind runs that they cannot take or in lanes that they do not look at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rowcall.base import database
from tests.support.processes import rowcall, running
from tests.support.shop import Shop

OLD = "INSERT INTO rowcall.job_runs (job_type, run_at) VALUES ('noop', now() - interval '1 day') RETURNING id"


@pytest.fixture
def shop(environment: dict[str, str], worker_url: str) -> Shop:
    return Shop(environment, worker_url)


def test_a_queue_with_much_older_work_does_not_starve_another(shop: Shop) -> None:
    shop.ask_many("noop", [{}] * 30, queue="mail", run_at=datetime.now(UTC) - timedelta(hours=1))
    other = shop.ask_many("noop", [{}], queue="reports")[0]
    rowcall(shop.environment, "worker", "once", "--concurrency", "1", "--limit", "2")
    assert shop.row(other)["status"] == "succeeded"


def test_queues_that_give_nothing_do_not_starve_another_however_many(shop: Shop) -> None:
    for priority in range(150):
        shop.ask_many("noop", [{}], queue="closed", priority=priority)
    shop.sql("INSERT INTO rowcall.queues (name, paused_at) VALUES ('closed', now())")
    other = shop.ask_many("noop", [{}], queue="open")[0]
    assert "succeeded 1" in rowcall(shop.environment, "worker", "once").stdout
    assert shop.row(other)["status"] == "succeeded"


def test_a_queue_with_a_limit_has_its_turn_and_no_more(shop: Shop) -> None:
    shop.ask_many("noop", [{}] * 30, queue="limited")
    shop.sql("INSERT INTO rowcall.queues (name, max_running) VALUES ('limited', 20)")
    others = [shop.ask_many("noop", [{}], queue=name)[0] for name in ("mail", "reports", "returns")]
    rowcall(shop.environment, "worker", "once", "--concurrency", "1", "--limit", "4")
    assert shop.count("succeeded") == 4
    assert sum(shop.row(run_id)["status"] == "succeeded" for run_id in others) in (2, 3)


def test_a_run_that_was_due_long_before_what_is_done_already_is_found(shop: Shop) -> None:
    with running(shop.environment, "worker", "run"):
        shop.ask_many("noop", [{}] * 600)
        shop.wait_for_all(600)
        [old] = shop.sql(OLD)
        shop.wait(old["id"], "succeeded")


def test_a_commit_that_comes_after_what_began_later_is_found(shop: Shop) -> None:
    with running(shop.environment, "worker", "run"):
        with database.transaction(shop.url) as late:
            [first] = database.fetch_all(late, "INSERT INTO rowcall.job_runs (job_type) VALUES ('noop') RETURNING id")
            shop.ask_many("noop", [{}] * 600)
            shop.wait_for_all(600)
        shop.wait(first["id"], "succeeded")
