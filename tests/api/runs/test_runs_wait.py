"""GET /v1/runs/{id}?wait: a real server answers when the run ends, and holds neither thread nor transaction."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.status import Status
from tests.api.serving import ONE_THREAD, Heard, Server, heard, request, send, served
from tests.support.pooler import pgbouncer
from tests.support.processes import children_of, gone, wait_until
from tests.support.rows import run_in

OPERATOR = Operator("a test")

# The server has one process and one thread, which may park ten requests.
ROOM = 10
SMALL = f"""
from rowcall_api.http import server; from rowcall.cli.main import main
server.CONNECTIONS = {2 * ROOM}; main()
"""


def made(url: str, status: Status = Status.QUEUED) -> int:
    with database.transaction(url) as connection:
        run_id: int = run_in(connection, status)["id"]
    return run_id


def cancel(url: str, run_id: int) -> None:
    with database.transaction(url) as connection:
        queue.cancel(connection, run_id, OPERATOR)


def open_transactions(url: str) -> list[database.Row]:
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rowcall api' AND xact_start IS NOT NULL"
    with database.transaction(url) as connection:
        return database.fetch_all(connection, sql)


def waiting(
    server: Server, clients: ExitStack, key: str, run_id: int, *headers: str, seconds: int = 60
) -> socket.socket:
    """Send a request that waits."""
    client = clients.enter_context(server.connect())
    send(client, request("GET", f"/v1/runs/{run_id}?wait={seconds}", key, *headers))
    return client


def shown(server: Server, key: str, run_id: int, *headers: str, seconds: int = 0) -> Heard:
    return server.ask(request("GET", f"/v1/runs/{run_id}?wait={seconds}", key, *headers))


def test_as_many_requests_as_there_is_room_wait_without_a_thread_or_a_transaction(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_ids = [made(module_url) for _ in range(ROOM)]
    parked = [waiting(server, clients, keys["read"], run_id) for run_id in run_ids]
    # The one thread has first handled all that came before.
    assert shown(server, keys["read"], run_ids[0]).told["status"] == "queued"
    wait_until(lambda: not open_transactions(module_url), "no transaction is open")
    refused = shown(server, keys["read"], run_ids[0], seconds=60)
    assert (refused.status, refused.told["type"]) == (429, "urn:rowcall:problem:too-many-waiting")
    assert refused.headers["Retry-After"] == "2"
    for run_id, client in zip(run_ids, parked, strict=True):
        cancel(module_url, run_id)
        answer = heard(client)
        assert (answer.status, answer.told["id"], answer.told["status"]) == (200, run_id, "cancelled")
    assert shown(server, keys["read"], made(module_url), seconds=1).status == 200


def test_a_run_that_has_ended_or_is_not_there_is_answered_at_once(
    server: Server, keys: dict[str, str], module_url: str
) -> None:
    dead = made(module_url, Status.DEAD)
    assert shown(server, keys["read"], dead, seconds=60).told["status"] == "dead"
    tag = shown(server, keys["read"], dead).headers["ETag"]
    assert shown(server, keys["read"], dead, f"If-None-Match: {tag}", seconds=60).status == 304
    assert shown(server, keys["read"], 999_999, seconds=60).status == 404


def test_when_the_time_is_up_the_answer_is_what_is_true_then(
    server: Server, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    answer = shown(server, keys["read"], run_id, seconds=1)
    assert (answer.status, answer.told["status"]) == (200, "queued")
    same = shown(server, keys["read"], run_id, f"If-None-Match: {answer.headers['ETag']}", seconds=1)
    assert (same.status, same.body) == (304, b"")


def test_who_sends_an_etag_waits_for_any_change_and_who_sends_none_for_the_end(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    tag = shown(server, keys["read"], run_id).headers["ETag"]
    of_a_change = waiting(server, clients, keys["read"], run_id, f"If-None-Match: {tag}")
    of_the_end = waiting(server, clients, keys["read"], run_id)
    assert shown(server, keys["read"], run_id).status == 200
    with database.transaction(module_url) as connection:
        queue.run_now(connection, run_id, OPERATOR)
    assert (changed := heard(of_a_change)).status == 200
    assert changed.headers["ETag"] != tag
    assert shown(server, keys["read"], run_id, f"If-None-Match: {tag}", seconds=60).status == 200
    cancel(module_url, run_id)
    assert heard(of_the_end).told["status"] == "cancelled"


def test_a_run_that_is_deleted_meanwhile_is_not_found(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    client = waiting(server, clients, keys["read"], run_id)
    assert shown(server, keys["read"], run_id).status == 200
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, "DELETE FROM rowcall.job_runs WHERE id = %(id)s", {"id": run_id})
    assert heard(client).status == 404


def test_clients_that_leave_make_room(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    for client in [waiting(server, clients, keys["read"], run_id) for _ in range(ROOM)]:
        client.close()
    wait_until(lambda: shown(server, keys["read"], run_id, seconds=1).status == 200, "there is room")


def test_a_client_that_closes_its_side_is_answered_with_what_is_true_then(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    client = waiting(server, clients, keys["read"], run_id)
    client.shutdown(socket.SHUT_WR)
    answer = heard(client)
    assert (answer.status, answer.told["status"]) == (200, "queued")


def test_the_next_request_on_the_connection_is_answered_after_the_one_that_waits(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    first, second = made(module_url), made(module_url)
    client = waiting(server, clients, keys["read"], first)
    send(client, request("GET", f"/v1/runs/{second}", keys["read"]))
    send(client, request("GET", f"/v1/runs/{second}?wait=60", keys["read"]))
    assert shown(server, keys["read"], first).status == 200
    cancel(module_url, first)
    assert [heard(client).told["status"] for _ in range(2)] == ["cancelled", "queued"]
    cancel(module_url, second)
    assert heard(client).told["status"] == "cancelled"


def test_a_key_that_is_revoked_meanwhile_gets_nothing(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    run_id = made(module_url)
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "short", ["read"], OPERATOR)
    client = waiting(server, clients, key, run_id)
    assert shown(server, keys["read"], run_id).status == 200
    with database.transaction(module_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.api_keys SET revoked_at = now() WHERE name = 'short'")
    cancel(module_url, run_id)
    assert heard(client).status == 401


def test_a_request_that_waited_has_one_line_in_the_log_and_counts_once_against_the_rate(
    module_url: str, keys: dict[str, str], tmp_path: Path
) -> None:
    slow = {"ROWCALL_RATE_LIMIT": "0.01", "ROWCALL_RATE_BURST": "1"}
    run_id = made(module_url)
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path, **slow) as server:
        answer = shown(server, keys["read"], run_id, "X-Request-Id: mine", seconds=1)
        assert (answer.status, answer.headers["X-Request-Id"]) == (200, "mine")
        assert '"key";r=0' in answer.headers["RateLimit"]
        assert shown(server, keys["read"], run_id).status == 429
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    [line] = [line for line in lines if line.get("request_id") == "mine"]
    assert (line["event"], line["status"]) == ("api answered", 200)


@pytest.mark.parametrize("send_signal", [os.kill, os.killpg])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_stops_answers_who_waits(
    number: signal.Signals,
    send_signal: Callable[[int, int], None],
    module_url: str,
    clients: ExitStack,
    keys: dict[str, str],
    tmp_path: Path,
) -> None:
    run_id = made(module_url)
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path) as server:
        parked = [waiting(server, clients, keys["read"], run_id) for _ in range(ROOM)]
        assert shown(server, keys["read"], run_id).status == 200
        # A terminal's Ctrl-C signals the whole group.
        send_signal(server.process.pid, number)
        for client in parked:
            answer = heard(client)
            assert (answer.status, answer.told["status"], answer.headers["Connection"]) == (200, "queued", "close")
        assert server.process.wait() == 0


def test_without_its_main_process_it_refuses_connections_at_once_answers_who_waits_and_exits(
    module_url: str, clients: ExitStack, keys: dict[str, str], tmp_path: Path
) -> None:
    run_id = made(module_url)
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path) as server:
        client = waiting(server, clients, keys["read"], run_id)
        feed = clients.enter_context(server.connect())
        send(feed, request("GET", "/v1/events?wait=60", keys["read"]))
        assert shown(server, keys["read"], run_id).status == 200
        [child] = children_of(server.process.pid)
        server.process.kill()
        answer = heard(client)
        assert server.refuses()
        assert (answer.status, answer.told["status"]) == (200, "queued")
        assert heard(feed).status == 200
        wait_until(lambda: gone(child), "the process has ended")


@pytest.mark.program("pgbouncer")
def test_requests_wait_on_behind_a_pooler_while_the_database_drops_its_sessions(
    module_url: str, clients: ExitStack, keys: dict[str, str], tmp_path: Path
) -> None:
    run_id = made(module_url)
    with (
        pgbouncer(module_url, "transaction", tmp_path) as pooled,
        served({**ONE_THREAD, "DATABASE_URL": pooled}, tmp_path) as server,
    ):
        parked = [waiting(server, clients, keys["read"], run_id) for _ in range(ROOM)]
        assert shown(server, keys["read"], run_id).status == 200
        with database.transaction(module_url) as connection:
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            database.fetch_all(connection, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        cancel(module_url, run_id)
        assert [heard(client).told["status"] for client in parked] == ["cancelled"] * ROOM
