"""The API server is stopped, loses its database, or its clients are cut off: each request takes effect once."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flask
import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall_api.app import create_app
from rowcall_api.http.server import is_no_timeout
from rowcall_migrations.migrate import migrate
from tests.api.serving import JSON, Server, request, send, served
from tests.support.gate import Gate, gate
from tests.support.processes import NOHUP, children_of, ignores, wait_until
from tests.support.server import own_server

# A server that waits for its requests as long as they take.
PATIENT = """
from rowcall_api import cli; from rowcall.cli.main import main
chosen = cli.options; cli.options = lambda *given: {**chosen(*given), "graceful_timeout": 3600}; main()
"""
NOOP = json.dumps({"job_type": "noop", "payload": {"hello": "world"}}).encode()


def key_on(url: str) -> str:
    with database.transaction(url) as connection:
        return api_keys.create_key(connection, "faults", ["enqueue", "read"], Operator("tests"))


def runs_on(url: str, idempotency_key: str) -> int:
    """Return the number of runs whose idempotency key starts with this one."""
    sql = "SELECT count(*) FROM rowcall.job_runs WHERE idempotency_key LIKE %(key)s || '%%'"
    with database.transaction(url) as connection:
        found: int = database.fetch_value(connection, sql, {"key": idempotency_key})
    return found


@pytest.fixture(scope="module")
def key(module_url: str) -> str:
    return key_on(module_url)


@pytest.fixture(scope="module")
def server(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served({**os.environ, "DATABASE_URL": module_url}, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def asking() -> Iterator[ThreadPoolExecutor]:
    """Yield threads for requests that wait."""
    with ThreadPoolExecutor(4) as threads:
        yield threads


@pytest.fixture
def barred(module_url: str) -> Iterator[Gate]:
    with gate(module_url) as barred:
        yield barred


def enqueue(key: str, idempotency_key: str, *headers: str) -> bytes:
    return request("POST", "/v1/runs", key, JSON, f"Idempotency-Key: {idempotency_key}", *headers, body=NOOP)


@pytest.mark.parametrize("send_signal", [os.kill, os.killpg])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_request_under_way_is_answered_when_the_server_is_told_to_stop_and_nobody_else_is_let_in(
    number: signal.Signals,
    send_signal: Callable[[int, int], None],
    key: str,
    barred: Gate,
    asking: ThreadPoolExecutor,
    module_url: str,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    asked = f"{number.name}-{send_signal.__name__}"
    with served(environment, tmp_path) as server:
        barred.hold_commit("job_runs")
        under_way = asking.submit(server.ask, enqueue(key, asked))
        barred.wait()
        # A terminal that closes signals the whole group.
        send_signal(server.process.pid, number)
        wait_until(server.refuses, "the server refuses connections")
        assert (server.process.poll(), under_way.done()) == (None, False)
        barred.open()
        assert under_way.result().status == 202
        assert server.process.wait() == 0
    assert runs_on(module_url, asked) == 1


def test_a_second_ctrl_c_ends_a_server_that_waits_for_its_requests(
    key: str, barred: Gate, asking: ThreadPoolExecutor, environment: dict[str, str], tmp_path: Path
) -> None:
    with served(environment, tmp_path, [sys.executable, "-P", "-c", PATIENT]) as server:
        barred.hold_commit("job_runs")
        under_way = asking.submit(server.ask, enqueue(key, "twice"))
        barred.wait()
        os.killpg(server.process.pid, signal.SIGINT)
        wait_until(server.refuses, "the server refuses connections")
        os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait() == 0
        assert under_way.result().status == 0
        barred.open()


def test_a_server_started_by_nohup_outlives_its_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    with served(environment, tmp_path, [*NOHUP, *own_command()]) as server:
        wait_until(lambda: server.ask(request("GET", "/healthz", "")).status == 200, "it serves")
        pids = [server.process.pid, *children_of(server.process.pid)]
        assert len(pids) > 1
        assert [ignores(pid, signal.SIGHUP) for pid in pids] == [True] * len(pids)


def test_a_client_that_is_cut_off_in_the_middle_of_a_request_can_repeat_it(
    server: Server, key: str, module_url: str
) -> None:
    whole = enqueue(key, "cut")
    for cut in (20, whole.index(b"\r\n\r\n") + 2, len(whole) - len(NOOP), len(whole) - 1):
        with server.connect() as connection:
            send(connection, whole[:cut])
    assert server.ask(enqueue(key, "later")).status == 202
    assert runs_on(module_url, "cut") == 0
    assert server.ask(whole).status == 202
    assert runs_on(module_url, "cut") == 1


def test_a_client_that_is_cut_off_before_it_hears_the_answer_can_repeat_the_request(
    server: Server, key: str, barred: Gate, module_url: str
) -> None:
    barred.hold_commit("job_runs")
    with server.connect() as connection:
        send(connection, enqueue(key, "unheard"))
        barred.wait()
        # So that closing sends a reset, and not only the end of the stream.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    barred.open()
    wait_until(lambda: runs_on(module_url, "unheard") == 1, "the request has taken effect")
    repeated = server.ask(enqueue(key, "unheard"))
    assert (repeated.status, repeated.headers["Idempotent-Replayed"]) == (200, "true")
    assert runs_on(module_url, "unheard") == 1


def test_a_client_that_does_not_take_its_answer_fills_no_log() -> None:
    told = [logging.makeLogRecord({"exc_info": (type(one), one, None)}) for one in (TimeoutError(), OSError("other"))]
    assert [is_no_timeout(line) for line in (*told, logging.makeLogRecord({}))] == [False, True, True]


def test_a_database_that_goes_in_the_middle_of_a_request_is_told_and_the_request_repeated_is_done_once(
    tmp_path: Path, asking: ThreadPoolExecutor
) -> None:
    with own_server(tmp_path / "server") as postgres:
        migrate(postgres.url, lock_timeout=3)
        app = create_app(postgres.url)
        client = Client(app, key_on(postgres.url))
        with gate(postgres.url) as barred:
            barred.hold_commit("job_runs")
            under_way = asking.submit(client.enqueue)
            barred.wait()
            postgres.restart(signal.SIGQUIT)
        lost = under_way.result()
        assert lost == (503, "urn:rowcall:problem:database-unreachable", True)
        assert [client.enqueue()[0] for _ in range(3)] == [202, 200, 200]
        assert runs_on(postgres.url, "mine") == 1
        assert client.status("/readyz") == 200
        postgres.stop()
        assert client.enqueue() == (503, "urn:rowcall:problem:database-unreachable", True)
        assert [client.status(path) for path in ("/readyz", "/healthz")] == [503, 200]
        app.extensions["database"].dispose()


class Client:
    """A client of the application itself, which has no server in between."""

    def __init__(self, app: flask.Flask, key: str) -> None:
        self._app = app
        self._key = key

    def enqueue(self) -> tuple[int, str | None, bool]:
        """Enqueue a run under one key; return the status, the problem's type, and whether there is a Retry-After."""
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": "mine"}
        answer = self._app.test_client().post("/v1/runs", data=NOOP, content_type="application/json", headers=headers)
        assert isinstance(answer.json, dict)
        return answer.status_code, answer.json.get("type"), "Retry-After" in answer.headers

    def status(self, path: str) -> int:
        """Return the status of a request like those of probes."""
        return self._app.test_client().get(path).status_code
