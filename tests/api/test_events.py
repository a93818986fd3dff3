"""GET /v1/events: a real server streams what happens, and ends the feed of a client that does not read."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from rowcall import queue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.api.conftest import Call, invalid
from tests.api.serving import ONE_THREAD, Server, heard, request, send, served
from tests.support.processes import wait_until

OPERATOR = Operator("a test")
LAST_ID = re.compile(r"id: ([0-9]{16}-[0-9a-f]{8})\n\n")

# The server has one process and one thread, and room for four clients.
ROOM = 4
SMALL = f"""
from rowcall_api.http import server; from rowcall_api.http.waiting import feed; from rowcall.cli.main import main
server.CONNECTIONS = {2 * ROOM}; feed.QUIET_SECONDS = 0.0; main()
"""


class Follower:
    """A client of the feed."""

    def __init__(self, server: Server, clients: ExitStack, key: str, query: str = "", *headers: str) -> None:
        self.connection = clients.enter_context(server.connect())
        accept = "Accept: text/event-stream"
        send(self.connection, request("GET", f"/v1/events?wait=300&{query}", key, accept, *headers))
        self.received = ""

    def until(self, words: str) -> str:
        """Receive until these words have come; return all that has come."""
        while words not in self.received:
            more = self.connection.recv(65_536)
            assert more, self.received
            self.received += more.decode()
        return self.received

    def until_id(self) -> str:
        """Receive until the next id, and return it."""
        before = len(LAST_ID.findall(self.received))
        while len(found := LAST_ID.findall(self.received)) <= before:
            self.received += self.connection.recv(65_536).decode()
        return str(found[-1])


def enqueue(url: str, queue_name: str | None = None) -> int:
    with database.transaction(url) as connection:
        return queue.enqueue(connection, "noop", {"secret": "hush"}, queue=queue_name).run_id


def event(run_id: int, status: str) -> str:
    return f'event: run\ndata: {{"id": {run_id}, "job_type": "noop", "queue": "default", "status": "{status}"'


def test_a_client_is_told_to_read_the_lists_and_then_what_happens(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    follower = Follower(server, clients, keys["read"])
    begun = follower.until("id: ")
    assert begun.startswith("HTTP/1.1 200 OK\r\n")
    for line in ("Content-Type: text/event-stream", "Transfer-Encoding: chunked", "X-Accel-Buffering: no"):
        assert line in begun
    assert "retry: 2000\n\n" in begun
    assert begun.count("event: ") == begun.count("event: reset\ndata: {}\n\n") == 1
    run_id = enqueue(module_url)
    follower.until(event(run_id, "queued"))
    with database.transaction(module_url) as connection:
        queue.cancel(connection, run_id, OPERATOR)
    assert "hush" not in follower.until(event(run_id, "cancelled"))


def test_a_client_that_comes_again_gets_what_it_missed(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    first = Follower(server, clients, keys["read"])
    last_id = first.until_id()
    first.connection.close()
    run_id = enqueue(module_url)
    again = Follower(server, clients, keys["read"], "", f"Last-Event-ID: {last_id}")
    assert "event: reset" not in again.until(event(run_id, "queued"))
    # Of another process, which may see transactions in another order.
    number = int(last_id.split("-")[0]) + 2_000_000
    other = Follower(server, clients, keys["read"], "", f"Last-Event-ID: {number}-00000000")
    other.until("id: ")
    for unknown in ("1-00000000", "9999999999999999-00000000", "soon", "9" * 300, last_id.split("-")[0][:-8]):
        assert "event: reset" in told_at_once(server, keys["read"], f"Last-Event-ID: {unknown}")


def told_at_once(server: Server, key: str, *headers: str) -> str:
    answer = server.ask(request("GET", "/v1/events?wait=0", key, *headers))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    return answer.body.decode()


def test_without_waiting_a_client_gets_what_has_happened_since_its_id(
    server: Server, keys: dict[str, str], module_url: str
) -> None:
    [last_id] = LAST_ID.findall(told_at_once(server, keys["read"]))
    run_id = enqueue(module_url)
    told = told_at_once(server, keys["read"], f"Last-Event-ID: {last_id}")
    assert event(run_id, "queued") in told
    assert "event: reset" not in told
    [last_id] = LAST_ID.findall(told)
    assert event(run_id, "queued") not in told_at_once(server, keys["read"], f"Last-Event-ID: {last_id}")


def test_a_client_gets_only_the_runs_that_it_wants(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    of_mail = Follower(server, clients, keys["read"], "queue=mail")
    of_others = Follower(server, clients, keys["read"], "job_type=prune_runs")
    of_all = Follower(server, clients, keys["read"])
    for follower in (of_mail, of_others, of_all):
        follower.until("event: reset")
    enqueue(module_url)
    mail = enqueue(module_url, "mail")
    of_all.until(f'"id": {mail}')
    assert of_mail.until(f'"id": {mail}').count("event: run") == 1
    of_others.until_id()
    assert "event: run" not in of_others.received


def test_the_feed_of_a_key_that_is_revoked_ends_and_others_go_on(
    server: Server, clients: ExitStack, keys: dict[str, str], module_url: str
) -> None:
    with database.transaction(module_url) as connection:
        key = api_keys.create_key(connection, "leaver", ["read"], OPERATOR)
        key_id = api_keys.id_of(connection, key)
    leaver, other = Follower(server, clients, key), Follower(server, clients, keys["read"])
    for follower in (leaver, other):
        follower.until("event: reset")
    with database.transaction(module_url) as connection:
        api_keys.revoke_key(connection, key_id, OPERATOR)
    leaver.until("\r\n0\r\n\r\n")
    run_id = enqueue(module_url)
    assert event(run_id, "queued") in other.until(event(run_id, "queued"))
    assert f'"id": {run_id}' not in leaver.received


def test_more_clients_than_there_is_room_for_are_refused_until_one_leaves(
    server: Server, clients: ExitStack, keys: dict[str, str]
) -> None:
    followers = [Follower(server, clients, keys["read"]) for _ in range(ROOM)]
    for follower in followers:
        follower.until("event: reset")
    refused = server.ask(request("GET", "/v1/events", keys["read"]))
    assert (refused.status, refused.told["type"]) == (429, "urn:rowcall:problem:too-many-waiting")
    followers[0].connection.close()
    ask = request("GET", "/v1/events?wait=0", keys["read"])
    wait_until(lambda: server.ask(ask).status == 200, "there is room")


def test_a_response_ends_after_its_time_and_an_old_client_gets_no_chunks(server: Server, keys: dict[str, str]) -> None:
    asked = request("GET", "/v1/events?wait=1", keys["read"])
    whole = server.ask(asked)
    assert (whole.status, whole.body.decode().count("event: reset")) == (200, 1)
    plain = server.ask(asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert "Transfer-Encoding" not in plain.headers
    assert plain.body.decode().startswith("retry: 2000\n\nevent: reset\ndata: {}\n\nid: ")


def test_a_client_that_does_not_read_is_dropped(
    module_url: str, keys: dict[str, str], clients: ExitStack, tmp_path: Path
) -> None:
    small = SMALL.replace(
        "main()", "from rowcall_api.http import receiving; receiving.SEND_BUFFER_BYTES = 2048; main()"
    )
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path, [sys.executable, "-P", "-c", small]) as server:
        deaf = [clients.enter_context(socket.socket()) for _ in range(ROOM)]
        for client in deaf:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", server.port))
            send(client, request("GET", "/v1/events?wait=300", keys["read"]))
        with database.transaction(module_url) as connection:
            queue.enqueue_many(connection, "noop", [{"number": number} for number in range(2000)])
        ask = request("GET", "/v1/events?wait=0", keys["read"])

        def dropped() -> bool:
            with database.transaction(module_url) as connection:
                queue.enqueue_many(connection, "noop", [{"more": number} for number in range(100)])
            return server.ask(ask).status == 200

        wait_until(dropped, "the clients that do not read are dropped")
        assert "Traceback" not in server.log.read_text()


def test_a_server_that_stops_ends_the_feed(
    module_url: str, keys: dict[str, str], clients: ExitStack, tmp_path: Path
) -> None:
    with served({**ONE_THREAD, "DATABASE_URL": module_url}, tmp_path) as server:
        client = clients.enter_context(server.connect())
        send(client, request("GET", "/v1/events?wait=300", keys["read"]))
        wait_until(lambda: b'"/v1/events"' in server.log.read_bytes(), "the response has begun")
        server.process.send_signal(signal.SIGTERM)
        assert heard(client).status == 200  # with the last chunk, or this would fail
        assert server.process.wait() == 0


def test_a_feed_is_for_who_may_read_and_asks_for_it(call: Call) -> None:
    assert call("GET", "/v1/events?wait=0", scope="operate").status_code == 403
    refused = call("GET", "/v1/events", headers={"Accept": "application/json"})
    assert (refused.status_code, json.loads(refused.data)["status"]) == (406, 406)
    for query in ("wait=-1", "wait=301", "wait=soon"):
        assert set(invalid(call("GET", f"/v1/events?{query}"))) == {"/wait"}


def test_another_server_answers_what_has_happened_and_ends(call: Call, module_url: str) -> None:
    begun = call("GET", "/v1/events").get_data(as_text=True)
    assert begun.startswith("retry: 2000\n\nevent: reset\n")
    run_id = enqueue(module_url)
    told = call("GET", "/v1/events", headers={"Last-Event-ID": LAST_ID.findall(begun)[0]})
    assert event(run_id, "queued") in told.get_data(as_text=True)
