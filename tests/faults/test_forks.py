"""When a process forks, the child shares no connection, no thread and no run with its parent."""

from __future__ import annotations

import pytest

from rowcall.base.database.pool import open_pool
from tests.support.processes import from_a_fork, rowcall
from tests.support.shop import Shop

BACKEND = "SELECT pg_backend_pid()"


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_the_pool_of_a_server_that_was_loaded_before_it_forked_is_made_anew_in_each_child(fresh_url: str) -> None:
    pool = open_pool(fresh_url, pool_size=1)
    with pool.connect() as connection:
        kept = connection.exec_driver_sql(BACKEND).scalar_one()

    def in_child() -> int:
        with pool.connect() as connection:
            backend: int = connection.exec_driver_sql(BACKEND).scalar_one()
        pool.dispose()
        return backend

    assert from_a_fork(in_child) not in ("", str(kept))
    with pool.connect() as connection:
        assert connection.exec_driver_sql(BACKEND).scalar_one() == kept
    pool.dispose()


@pytest.mark.parametrize("job_type", ["shop_forks", "shop_isolated_forks"])
@pytest.mark.parametrize("child", ["returns", "raises", "exits", "is multiprocessing's"])
def test_a_child_that_a_handler_forks_works_by_itself_and_settles_nothing(
    shop: Shop, job_type: str, child: str
) -> None:
    run_id = shop.ask(job_type, ends=child)
    worked = rowcall(shop.environment, "worker", "once")
    assert "claimed 1, succeeded 1, failed 0" in worked.stdout, worked.stderr
    assert worked.stdout.count("claimed") == 1
    run = shop.row(run_id)
    assert (run["result"], run["lease_no"]) == ({"parent": True, "kept": True}, 1)
    assert [row["order_id"] for row in shop.sql("SELECT order_id FROM bookings ORDER BY order_id")] == [1, 2]
