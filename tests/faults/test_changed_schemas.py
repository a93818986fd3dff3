"""Workers whose schema is migrated back or dropped under them: they stop with a sentence, not with a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import read_until, rowcall, running
from tests.support.shop import Shop

OLDER = r"the database's schema is 0001, older than this code needs (0002): run `rowcall migrate`"
GONE = "the database has no Rowcall schema (needed: 0002): run `rowcall migrate`"


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop({**environment, "ROWCALL_POLL": "0.2", "ROWCALL_LOG_FORMAT": "json"}, fresh_url)


def change_schema(shop: Shop, target: str) -> None:
    """Migrate to `target`, or drop the schema with psql's means."""
    if target == "dropped":
        shop.sql("DROP SCHEMA rowcall CASCADE")
    else:
        done = rowcall(shop.environment, "migrate", "--to", target, "--yes")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("target", "sentence", "processes"),
    [("0001", OLDER, 1), ("base", GONE, 1), ("base", GONE, 2), ("dropped", GONE, 1)],
)
def test_a_worker_whose_schema_goes_stops_with_the_sentence_of_the_commands(
    shop: Shop, target: str, sentence: str, processes: int
) -> None:
    with running(shop.environment, "worker", "run", "--processes", str(processes)) as worker:
        for _ in range(processes):
            read_until(worker, "worker started")
        change_schema(shop, target)
        said, _ = worker.communicate()
    assert worker.returncode == 1, said
    assert f"rowcall: {sentence}" in said
    assert "Traceback" not in said
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    changed = [event for event in events if event["event"] == "schema changed"]
    assert {event["error"] for event in changed} == {sentence}


def test_a_run_in_flight_is_written_where_the_older_schema_still_has_it(shop: Shop, tmp_path: Path) -> None:
    run_id = shop.ask("shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "run", "--grace", "3600") as worker:
        shop.wait_for_knock(run_id)
        change_schema(shop, "0001")
        read_until(worker, "schema changed")  # the reason comes first, because the rest may take the whole grace
        read_until(worker, "worker stopping")
        shop.open_door(run_id)
        said, _ = worker.communicate()
    assert (worker.returncode, "Traceback" in said) == (1, False), said
    assert shop.row(run_id)["status"] == "succeeded"


def test_a_run_in_flight_whose_row_is_gone_does_not_keep_the_worker(shop: Shop, tmp_path: Path) -> None:
    run_id = shop.ask("shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "run", "--grace", "3600") as worker:
        shop.wait_for_knock(run_id)
        change_schema(shop, "base")
        read_until(worker, "worker stopping")
        Path(tmp_path, "1 open").touch()  # its row no longer says where its door is
        said, _ = worker.communicate()
    assert (worker.returncode, "Traceback" in said) == (1, False), said
    assert "run left until its lease expires" in said
