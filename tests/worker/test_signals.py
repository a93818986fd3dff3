"""Signals to a worker: a closed terminal stops it gently, and a second signal says what it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from datetime import datetime
from pathlib import Path

import pytest

from rowcall.base.child_processes import own_command
from rowcall_worker.runtime import signals
from rowcall_worker.runtime.signals import ONE_REQUEST_SECONDS, StopSignal
from tests.support.processes import (
    LIMIT_SECONDS,
    NOHUP,
    children_of,
    from_a_fork,
    ignores,
    insist,
    read_until,
    rowcall,
    running,
    wait_until,
)
from tests.support.shop import Shop
from tests.support.silence import network


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


def test_a_signal_that_comes_while_the_main_thread_holds_the_lock_of_what_wakes_it_stops_the_worker() -> None:
    def outcome() -> str:
        lock, woken = threading.Lock(), threading.Event()

        def wake() -> None:
            if lock.acquire(timeout=LIMIT_SECONDS):
                woken.set()

        stop = StopSignal(wake, lambda: None)
        with lock:
            signal.raise_signal(signal.SIGTERM)
        woken.wait(LIMIT_SECONDS)
        return f"{stop.name} {woken.is_set()}"

    assert from_a_fork(outcome) == "SIGTERM True"


@pytest.mark.parametrize(("seconds", "ends"), [(0.0, False), (ONE_REQUEST_SECONDS, False), (2.0, True)])
def test_signals_that_come_together_are_one_request_and_a_later_one_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch, seconds: float, ends: bool
) -> None:
    now = [1000.0]
    monkeypatch.setattr(signals, "elapsed", lambda: now[0])

    def outcome() -> str:
        stop = StopSignal(lambda: None, lambda: None)
        signal.raise_signal(signal.SIGTERM)
        now[0] += seconds
        signal.raise_signal(signal.SIGTERM)
        return stop.name

    assert from_a_fork(outcome) == ("" if ends else "SIGTERM")


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_that_is_heard_twice_does_not_end_it_at_once(
    shop: Shop, tmp_path: Path, first: signal.Signals
) -> None:
    run_id = shop.ask("shop_wait", doors=str(tmp_path))
    with running(shop.environment, "worker", "run", "--grace", "3600") as worker:
        shop.wait_for_knock(run_id)
        worker.send_signal(first)
        read_until(worker, "worker stopping")
        worker.send_signal(signal.SIGHUP)
        shop.open_door(run_id)
        said, _ = worker.communicate()
        assert worker.returncode == 0, said
    assert shop.row(run_id)["status"] == "succeeded"


def test_each_of_several_processes_is_stopped_gently_when_the_terminal_closes(shop: Shop, tmp_path: Path) -> None:
    with running(shop.environment, "worker", "run", "--grace", "0.1", "--processes", "2") as workers:
        for _ in range(2):
            read_until(workers, "worker started")
        run_id = shop.ask("shop_wait", doors=str(tmp_path))
        shop.wait_for_knock(run_id)
        workers.send_signal(signal.SIGHUP)
        said, _ = workers.communicate()
        assert (workers.returncode, said.count('"worker stopped"')) == (0, 2), said
    assert shop.row(run_id)["status"] == "queued"


@pytest.mark.parametrize("processes", [1, 2])
def test_started_by_nohup_it_outlives_its_terminal(shop: Shop, processes: int) -> None:
    command = [*NOHUP, *own_command("worker", "run", "--processes", str(processes))]
    run_id = shop.ask("noop")
    with subprocess.Popen(command, env=shop.environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as worker:
        wait_until(lambda: shop.row(run_id)["status"] == "succeeded", "it works")
        pids = [worker.pid, *(children_of(worker.pid) if processes > 1 else ())]
        assert [ignores(pid, signal.SIGHUP) for pid in pids] == [True] * len(pids)
        worker.terminate()


def test_a_second_signal_names_the_runs_that_are_left_and_the_end_of_their_leases(shop: Shop, tmp_path: Path) -> None:
    run_ids = shop.ask_many("shop_wait", [{"doors": str(tmp_path / name)} for name in ("one", "two")])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with running(shop.environment, "worker", "run", "--grace", "3600") as worker:
        for run_id in run_ids:
            shop.wait_for_knock(run_id)
        worker.terminate()
        read_until(worker, "worker stopping")
        insist(worker)
        said, _ = worker.communicate()
    assert worker.returncode == 128 + signal.SIGTERM
    # Late in the suite, the template of this database is so old that its schedules seem to have stood still.
    lines = [line for line in map(json.loads, said.splitlines()) if line["event"] != "schedule resumed"]
    assert len(lines) == 1, said
    line = lines[0]
    assert (line["event"], line["runs"], sorted(line["run_ids"])) == ("worker ended at once", 2, run_ids)
    rows = [shop.row(run_id) for run_id in run_ids]
    assert [row["status"] for row in rows] == ["running", "running"]
    # The worker counts from before its heartbeat, the database from when it got it.
    first, last = min(row["started_at"] for row in rows), max(row["locked_until"] for row in rows)
    assert first < datetime.fromisoformat(line["leases_end_at"]) <= last


def test_the_last_line_says_why_the_worker_stopped(shop: Shop) -> None:
    with running(shop.environment, "worker", "run") as worker:
        read_until(worker, "worker started")
        worker.send_signal(signal.SIGTERM)
        said, _ = worker.communicate()
    assert '"reason": "SIGTERM"' in said
    for option, reason in ((("--limit", "1"), "limit reached"), (("--max-time", "0"), "max-time reached")):
        shop.ask("noop")
        assert f'"reason": "{reason}"' in rowcall(shop.environment, "worker", "once", *option).stderr
    with network(shop.url) as between:
        between.flows.clear()
        with running(shop.environment | {"DATABASE_URL": between.url}, "worker", "once") as visit:
            wait_until(lambda: between.wires, "it connects, to look whether anything is due")
            visit.send_signal(signal.SIGTERM)
            between.flows.set()
            assert '"reason": "SIGTERM"' in visit.communicate()[0]
    for claimed in (1, 0):  # the second one starts no threads
        ended = rowcall(shop.environment, "worker", "once")
        assert ended.stdout.startswith(f"claimed {claimed}")
        assert '"reason": "nothing that it serves is due"' in ended.stderr
