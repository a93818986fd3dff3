"""`rowcall workers`: which workers are alive, and what each performs."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest

from rowcall.base import database
from rowcall.queue.claims.handover import holder_of
from rowcall.queue.workers import Registration, register, stopped
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.rows import run_in
from tests.support.terminal import on_terminal

BUSY, STOPPED = "worker-1.eu-central.example:4711:0a1b2c", "worker-2.eu-central.example:4712:0a1b2c"


WAITING = "Handed over to Celery, and waiting for a consumer:"
PERFORMING = "Consumers of Celery that perform runs:"

IDLE = "worker-3:4713:0a1b2c"


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of a `rowcall` process on a database with a busy worker and one that has stopped."""
    with database.transaction(fresh_url) as connection:
        for number, name in enumerate((BUSY, STOPPED)):
            register(connection, Registration(name, name.partition(":")[0], 4711 + number, "0.2.0", None, ["noop"], 4))
        stopped(connection, STOPPED)
        for _ in range(3):
            run_in(connection, Status.RUNNING, locked_by=f"'{BUSY}'", started_at="now() - interval '3 minutes'")
    return {**environment, "DATABASE_URL": fresh_url}


def test_the_list_fits_100_columns_and_names_the_runs(environment: dict[str, str]) -> None:
    lines = on_terminal(environment, "workers")
    assert max(map(len, lines)) <= 100
    assert lines[0].split() == ["id", "state", "started_at", "heartbeat_at", "running", "runs"]
    [busy] = lines[1:]
    assert busy.startswith("worker-1")
    assert " busy " in busy
    assert "noop 1, noop 2" in busy


@pytest.mark.parametrize(
    ("name", "age", "state"),
    [
        (BUSY, 0, "busy"),
        (BUSY, 1.6, r"busy, silent for \d+ s"),
        (IDLE, 1.6, "awake"),
        (IDLE, 2.6, r"awake, silent for \d+ s"),
        (IDLE, 8, "silent"),
    ],
)
def test_a_worker_that_missed_heartbeats_says_for_how_long(
    environment: dict[str, str], fresh_url: str, name: str, age: float, state: str
) -> None:
    with database.transaction(fresh_url) as connection:
        register(connection, Registration(IDLE, "worker-3", 4713, "0.2.0", None, ["noop"], 4, 20.0))
        late = f"heartbeat_seconds = 20, heartbeat_at = now() - interval '{20 * age} seconds'"
        database.fetch_all(connection, f"UPDATE rowcall.workers SET {late} WHERE id = '{name}'")
    # The interval is the worker's own.
    shown = on_terminal({**environment, "ROWCALL_HEARTBEAT": "5"}, "workers", "--stopped")
    [line] = [line for line in shown if line.startswith(name.partition(":")[0][:9])]
    assert max(map(len, shown)) <= 100
    assert re.fullmatch(state, re.split("  +", line)[1])


def test_a_pipe_gets_all_columns_and_json_all_fields(environment: dict[str, str]) -> None:
    piped = rowcall(environment, "workers", "--stopped").stdout
    assert BUSY in piped
    assert " stopped " in piped
    assert "concurrency" in piped
    told = json.loads(rowcall(environment, "workers", "--json").stdout)["workers"]
    assert [(worker["id"], worker["running"], len(worker["runs"])) for worker in told] == [(BUSY, 3, 3)]
    assert datetime.fromisoformat(told[0]["runs"][0]["started_at"])


@pytest.mark.parametrize("options", [[], ["--stopped"]])
def test_an_empty_list_says_so(environment: dict[str, str], fresh_url: str, options: list[str]) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.workers")
    told = " ".join(rowcall(environment, "workers", *options).stdout.split())
    assert "start one with `rowcall worker run`, or let cron start `rowcall worker once` every minute" in told


def test_between_the_visits_of_cron_the_empty_list_says_when_the_last_one_was(
    environment: dict[str, str], fresh_url: str
) -> None:
    visit = "heartbeat_at = now() - interval '40 seconds', stopped_at = now() - interval '40 seconds'"
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, f"UPDATE rowcall.workers SET {visit}")
    told = rowcall(environment, "workers").stdout
    assert re.search(r"the last heartbeat was 4\d s ago \(`rowcall workers --stopped`\)", " ".join(told.split()))
    told = json.loads(rowcall(environment, "workers", "--json").stdout)
    assert told == {"workers": [], "handed_over": {"waiting": [], "consumers": [], "more": False}}


def test_below_the_workers_is_what_was_handed_over(environment: dict[str, str], fresh_url: str) -> None:
    message, consumer = holder_of("parcels", "shop.parcels.tasks.send_to_each_customer"), f"consumer {IDLE}"
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.workers")
        for holder in (message, message, consumer):
            run_in(connection, Status.RUNNING, locked_by=f"'{holder}'", started_at="now() - interval '5 minutes'")
    lines = on_terminal(environment, "workers")
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("no worker is alive")
    waiting, performing = lines.index(WAITING), lines.index(PERFORMING)
    assert lines[waiting + 1].split() == ["queue", "task", "waiting", "waiting_since", "run_id"]
    assert lines[waiting + 2].split() == [*message.split()[1:], "2", "5", "min", "ago", "4"]
    assert re.fullmatch(rf"{IDLE} +busy +(now|\d+ s ago) +1 +noop 6", lines[performing + 2])
    with database.transaction(fresh_url) as connection:
        late = "updated_at = now() - interval '80 seconds', locked_until = now() + interval '40 seconds'"
        database.fetch_all(connection, f"UPDATE rowcall.job_runs SET {late} WHERE locked_by = '{consumer}'")
    assert re.search(rf"{IDLE} +busy, silent for 1 min 2\d s ", "\n".join(on_terminal(environment, "workers")))


def test_where_nothing_is_handed_over_nothing_is_said_of_it(environment: dict[str, str]) -> None:
    assert not {WAITING, PERFORMING} & {*on_terminal(environment, "workers")}
