"""Clients that are silent, slow or gone block no thread, and others get their responses meanwhile."""

from __future__ import annotations

import select
import socket
import ssl
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rowcall_api.http.receiving import CONTINUE
from rowcall_api.http.server import CONNECTIONS
from tests.api.conftest import PROBLEM, There
from tests.api.hostile.test_hostile_wire import KEY, LIMIT, NOOP, REFUSED
from tests.api.serving import JSON, Heard, Server, chunked, heard, request, send, served
from tests.support.processes import LIMIT_SECONDS, wait_until

READY = b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n"
LAST_READY = READY.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

# More than a process has threads.
MANY = 20

# More responses than the buffers of a connection hold.
PIPELINED = 100

# A server that waits longer for a request than any test takes, even on a busy machine.
BEGIN = "from rowcall_api.http import receiving; from rowcall.cli.main import main\n"
PATIENT = f"{BEGIN}receiving.REQUEST_SECONDS = 3600.0; main()"

# A server that waits half a second for a request, so that no test has to wait ten.
IMPATIENT = f"""{BEGIN}
receiving.REQUEST_SECONDS = 0.5
receiving.ANSWER_SECONDS = 0.5
receiving.HELD_BYTES = 300_000
main()
"""


@pytest.fixture(scope="module")
def server(
    module_url: str, keys: dict[str, str], there: There, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    environment = {"DATABASE_URL": module_url, "PATH": "", "ROWCALL_API_WORKERS": "1"}
    with served(environment, tmp_path_factory.mktemp("api"), [sys.executable, "-P", "-c", PATIENT]) as server:
        yield server
        assert server.ask(READY).status == 200
        assert "Traceback" not in server.log.read_text()


@pytest.fixture(scope="module")
def impatient(module_url: str, there: There, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {"DATABASE_URL": module_url, "PATH": "", "ROWCALL_API_WORKERS": "1"}
    with served(environment, tmp_path_factory.mktemp("impatient"), [sys.executable, "-P", "-c", IMPATIENT]) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def keep_nobody_waiting(server: Server, clients: Sequence[socket.socket]) -> bool:
    """Whether the server answers a request while it still waits for all of these clients."""
    assert [server.ask(READY).status for _ in range(3)] == [200] * 3
    return all(is_open(client) for client in clients)


def is_open(client: socket.socket) -> bool:
    """Whether the server has neither closed the connection nor answered; 100 Continue is not an answer."""
    client.setblocking(False)
    try:
        return client.recv(100) == CONTINUE
    except BlockingIOError:
        return True


def posted(key: str, *headers: str, body: bytes = b"") -> bytes:
    return request("POST", "/v1/runs", key, JSON, *headers, body=body)


BEGINNINGS = {
    "nothing": b"",
    "a part of a line": b"GET /heal",
    "a part of the head": b"GET /healthz HTTP/1.1\r\nX-Slow: ",
    "a part of a body": posted("", "Content-Length: 20000") + b'{"job',
    "a part of a chunk": posted("", "Transfer-Encoding: chunked") + b'5000\r\n{"j',
    "a part of a chunk's size": posted("", "Transfer-Encoding: chunked") + b"1\r\n{\r\n1",
    "a part of a trailer": posted("", "Transfer-Encoding: chunked") + b"0\r\nX-Slow: ",
    "a promise of a body": posted("", "Content-Length: 20000", "Expect: 100-continue"),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_clients_that_send_a_part_of_a_request_keep_nobody_waiting(
    server: Server, clients: ExitStack, beginning: str
) -> None:
    slow = [clients.enter_context(server.connect()) for _ in range(MANY)]
    for client in slow:
        send(client, BEGINNINGS[beginning])
    assert keep_nobody_waiting(server, slow)


def test_600_silent_clients_keep_nobody_waiting(server: Server, clients: ExitStack) -> None:
    silent = [clients.enter_context(server.connect()) for _ in range(600)]
    # If few descriptors are allowed, the server has closed the oldest connections.
    assert keep_nobody_waiting(server, silent[-MANY:])


def test_clients_that_do_not_close_after_their_last_answer_keep_nobody_waiting(
    server: Server, clients: ExitStack
) -> None:
    lingering = [clients.enter_context(server.connect()) for _ in range(MANY)]
    for client in lingering:
        send(client, LAST_READY)
        assert (heard(client).status, client.recv(1)) == (200, b"")
    assert server.ask(READY).status == 200
    # If the server had closed its side, this would cause a reset.
    for client in lingering:
        client.sendall(b"late")


def test_clients_that_do_not_read_their_answers_keep_nobody_waiting(server: Server, clients: ExitStack) -> None:
    for _ in range(MANY):
        ask_and_read_nothing(server, clients)
    # Enough that the others' responses fill all buffers meanwhile.
    assert {server.ask(READY).status for _ in range(300)} == {200}


def test_a_client_that_does_not_read_its_answers_is_let_go(impatient: Server, clients: ExitStack) -> None:
    deaf = ask_and_read_nothing(impatient, clients)
    for _ in range(3):  # each takes at least as long as a client may take for a response
        assert clients.enter_context(impatient.connect()).recv(1) == b""
    assert 0 < everything_from(deaf).count(b"HTTP/1.1 200 OK") < PIPELINED


def ask_and_read_nothing(server: Server, clients: ExitStack) -> socket.socket:
    client = clients.enter_context(socket.socket())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect(("127.0.0.1", server.port))
    send(client, b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * PIPELINED)
    return client


def everything_from(client: socket.socket) -> bytes:
    """Return what the server has sent until it closed the connection."""
    answers = bytearray()
    with suppress(ConnectionError):
        while more := client.recv(65_536):
            answers += more
    return bytes(answers)


def test_of_more_clients_than_a_server_has_room_for_the_one_that_waited_longest_is_let_go(
    server: Server, clients: ExitStack
) -> None:
    first = clients.enter_context(server.connect())
    for _ in range(CONNECTIONS):
        clients.enter_context(server.connect())
    assert server.ask(READY).status == 200
    assert first.recv(1) == b""


def test_200_clients_keep_their_connections_and_each_request_is_answered(server: Server, clients: ExitStack) -> None:
    kept = [clients.enter_context(server.connect()) for _ in range(200)]
    for _ in range(3):
        for client in kept:
            send(client, READY)
        assert [heard(client).status for client in kept] == [200] * len(kept)


@pytest.mark.parametrize("what", [what for what, (_, raw) in REFUSED.items() if len(raw) < 1_000])
def test_a_request_in_pieces_of_one_byte_is_answered_as_if_it_came_at_once(
    server: Server, keys: dict[str, str], what: str
) -> None:
    status, raw = REFUSED[what]
    assert in_pieces(server, raw.replace(KEY.encode(), keys["admin"].encode()), 1).status == status


def test_a_large_body_in_small_pieces_is_read(server: Server, keys: dict[str, str]) -> None:
    body = NOOP + b" " * (LIMIT - len(NOOP))
    in_chunks = chunked(*(body[start : start + 1_000] for start in range(0, LIMIT, 1_000)))
    for raw in (
        posted(keys["admin"], body=body),
        posted(keys["admin"], "Transfer-Encoding: chunked") + in_chunks,
        posted(keys["admin"], "Transfer-Encoding: chunked") + chunked(*(bytes([byte]) for byte in NOOP)),
    ):
        assert in_pieces(server, raw, 777).status == 202


def in_pieces(server: Server, raw: bytes, size: int) -> Heard:
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(raw), size):
            send(connection, raw[start : start + size])
        return heard(connection)


ENDLESS: dict[str, tuple[int, bytes]] = {
    "a line": (414, b"GET /" + b"x" * 10_000),
    "a head": (431, b"GET / HTTP/1.1\r\n" + b"X-Long: x\r\n" * 10_000),
    "a trailer": (400, posted(KEY, "Transfer-Encoding: chunked") + b"0\r\n" + b"X-Long: x\r\n" * 10_000),
    "chunks of nothing but their sizes": (
        413,
        posted(KEY, "Transfer-Encoding: chunked") + (b"1;" + b"x" * 8_000 + b"\r\n{\r\n") * 400,
    ),
    "a body that waits to be asked for": (413, posted(KEY, "Content-Length: 999999", "Expect: 100-continue")),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_is_too_long_is_refused_before_it_ends(server: Server, keys: dict[str, str], what: str) -> None:
    status, raw = ENDLESS[what]
    refused = server.ask(raw.replace(KEY.encode(), keys["admin"].encode()))
    assert (refused.status, refused.headers["Content-Type"]) == (status, PROBLEM)


def test_a_client_that_speaks_tls_is_refused_at_once(server: Server) -> None:
    hello = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="here").do_handshake()
    assert server.ask(hello.read()).status == 400


def test_a_client_that_closes_its_side_after_a_request_is_answered(server: Server) -> None:
    for raw, status in ((READY, 200), (READY[:-2], 0), (BEGINNINGS["a part of a body"], 0)):
        with server.connect() as connection:
            send(connection, raw)
            connection.shutdown(socket.SHUT_WR)
            assert heard(connection).status == status


def test_a_client_of_http_1_0_is_answered_and_its_connection_closed(server: Server) -> None:
    with server.connect() as connection:
        send(connection, b"GET /healthz HTTP/1.0\r\n\r\n")
        assert heard(connection).status == 200
        assert connection.recv(1) == b""


def test_a_body_that_a_route_does_not_read_is_not_taken_for_the_next_request(server: Server) -> None:
    hidden = b"GET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n"
    with server.connect() as connection:
        for framing in (b"Content-Length: %d" % len(hidden), b"Transfer-Encoding: chunked"):
            body = chunked(hidden) if b"chunked" in framing else hidden
            send(connection, READY.replace(b"Host: here", b"Host: here\r\n" + framing) + body)
            assert heard(connection).status == 200
        send(connection, LAST_READY)
        assert heard(connection).status == 200


@pytest.mark.parametrize("beginning", sorted(set(BEGINNINGS) - {"nothing", "a promise of a body"}))
def test_a_request_that_does_not_arrive_in_time_is_refused_however_often_a_byte_of_it_comes(
    impatient: Server, beginning: str
) -> None:
    with impatient.connect() as client:
        send(client, BEGINNINGS[beginning])

        def refused() -> bool:
            send(client, b"1")
            return bool(select.select([client], [], [], 0)[0])

        wait_until(refused, "the server waits no more")
        answer = heard(client)
    assert (answer.status, answer.headers["Content-Type"]) == (408, PROBLEM)


def test_a_client_that_sends_nothing_is_let_go(impatient: Server) -> None:
    with impatient.connect() as client:
        assert client.recv(1) == b""


def test_requests_that_arrive_are_refused_when_they_are_more_than_a_server_has_memory_for(
    impatient: Server, clients: ExitStack
) -> None:
    slow = [clients.enter_context(impatient.connect()) for _ in range(2)]
    for client in slow:
        send(client, posted("", f"Content-Length: {LIMIT}") + b" " * (LIMIT - 1))
    wait_until(lambda: select.select(slow, [], [], 0)[0], "one of them is refused")
    assert sorted(heard(client).status for client in slow) == [408, 503]
    assert impatient.ask(READY).status == 200


def test_a_server_that_stops_waits_for_no_silent_client(module_url: str, tmp_path: Path, clients: ExitStack) -> None:
    with served({"DATABASE_URL": module_url, "PATH": ""}, tmp_path, ROWCALL_API_WORKERS="1") as server:
        silent = [clients.enter_context(server.connect()) for _ in range(MANY)]
        send(silent[0], BEGINNINGS["a part of a body"])
        assert server.ask(READY).status == 200
        server.process.terminate()
        assert server.process.wait(LIMIT_SECONDS) == 0
        assert heard(silent[0]).status == 503
