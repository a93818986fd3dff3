"""Pages are limited in bytes: they omit payloads and results unless requested, and end early if they grow too large."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue import Filter, attempts_page, list_runs
from rowcall.queue.views.lists import PAGES, parameters
from rowcall.status import Event, Status
from tests.support.rows import run_in

LARGE = "jsonb_build_object('text', repeat('x', {bytes}))"


def sized(connection: PgConnection, payload: int, result: int = 0) -> int:
    columns = {"payload": LARGE.format(bytes=payload), "result": LARGE.format(bytes=result)}
    run_id: int = run_in(connection, Status.SUCCEEDED, **columns)["id"]
    return run_id


def pages(connection: PgConnection, **asked: Any) -> list[list[int]]:
    """Return the ids of each page, up to the last one."""
    seen, cursor = [], None
    while True:
        page = list_runs(connection, Filter(), cursor=cursor, **asked)
        seen.append([run["id"] for run in page.runs])
        if (cursor := page.next) is None:
            return seen


@pytest.mark.parametrize("include", [(), ("payload",), ("result",), ("payload", "result")])
def test_a_list_has_payloads_and_results_where_they_are_asked_for(
    connection: PgConnection, include: tuple[str, ...]
) -> None:
    sized(connection, 1, 2)
    [run] = list_runs(connection, Filter(), include=include).runs
    assert {name: len(run[name]["text"]) for name in ("payload", "result") if name in run} == {
        name: size for name, size in {"payload": 1, "result": 2}.items() if name in include
    }


def test_the_database_does_not_send_what_is_not_asked_for(connection: PgConnection) -> None:
    sized(connection, 1, 1)
    [row] = fetch_all(
        connection, PAGES["all"], {**parameters(connection, Filter(), 50, None), "milliseconds": 5000, "waited": 4000}
    )
    assert (row["payload"], row["result"], "last_stack" in row) == (None, None, False)


def test_a_page_ends_before_it_has_more_bytes_than_a_page_may(connection: PgConnection) -> None:
    runs = [sized(connection, 1000) for _ in range(5)][::-1]
    assert pages(connection, include=("payload",), page_bytes=4500) == [runs[:2], runs[2:4], runs[4:]]
    assert pages(connection, page_bytes=4500) == [runs]


def test_a_run_that_is_larger_than_a_page_is_a_page_of_its_own(connection: PgConnection) -> None:
    runs = [sized(connection, 1000) for _ in range(3)][::-1]
    assert pages(connection, include=("payload",), page_bytes=1000) == [[run] for run in runs]


def test_a_page_of_attempts_ends_by_its_bytes_too(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED)["id"]
    fetch_all(
        connection,
        f"""INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, stack)
        SELECT %(run_id)s, number, number, '{Event.FAIL}', 'worker-1', repeat('x', 1000)
        FROM generate_series(1, 5) AS number""",
        {"run_id": run},
    )
    seen, after, more = [], 0, True
    while more:
        rows, more = attempts_page(connection, run, after, limit=4, page_bytes=4000)
        seen.append([row["lease_no"] for row in rows])
        after = seen[-1][-1]
    assert seen == [[1, 2, 3], [4, 5]]
    assert [len(attempts_page(connection, run, 0, limit)[0]) for limit in (1, 4, 5, 200)] == [1, 4, 5, 5]
