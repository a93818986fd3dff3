"""gunicorn's options, and the page that describes them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config

from rowcall.base.child_processes import own_command
from rowcall.base.listeners import listen
from rowcall.base.settings import Settings
from rowcall.queue.views import lists
from rowcall_api.app import BODY_BYTES
from rowcall_api.http import database, incoming, rate_limit, receiving
from rowcall_api.http.server import CONNECTIONS, Worker, options
from rowcall_api.http.token_bucket import Policy
from rowcall_api.http.waiting import poller
from rowcall_api.schemas.waiting.events import LONGEST_FEED_SECONDS
from rowcall_api.schemas.waiting.runs import LONGEST_WAIT_SECONDS

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "api-server.md").read_text().split())


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as listener:
        yield listener


@pytest.fixture
def chosen(listener: socket.socket) -> dict[str, Any]:
    return options(Settings(api_workers=3, api_threads=5), listener)


def test_every_option_is_one_that_gunicorn_has_and_takes(chosen: dict[str, Any]) -> None:
    config = Config()
    for name, value in chosen.items():
        config.set(name, value)
    assert (config.workers, config.threads) == (3, 5)
    assert (config.forwarded_allow_ips, config.forwarder_headers) == ([], [])


def test_what_a_request_may_wait_for_ends_before_a_server_that_stops_gives_it_up(chosen: dict[str, Any]) -> None:
    assert max(lists.SECONDS, database.PATIENCE_SECONDS) < chosen["graceful_timeout"] < 15


def test_a_process_that_finds_nobody_listening_any_more_ends_its_requests_all_the_same(listener: socket.socket) -> None:
    worker = Worker.__new__(Worker)
    listener.shutdown(socket.SHUT_RDWR)
    worker.accept(listener)
    listener.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        worker.accept(listener)


def test_the_port_is_the_apis_before_the_api_has_begun(listener: socket.socket, fresh_url: str) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        api = subprocess.Popen(
            own_command("api", "--listener", str(listener.fileno())),
            pass_fds=[listener.fileno()],
            env={**os.environ, "DATABASE_URL": fresh_url},
        )
        assert client.recv(100).startswith(b"HTTP/1.0 200 OK")
        api.terminate()
        assert api.wait(timeout=60) == 0


def test_the_page_tells_what_is_chosen(chosen: dict[str, Any]) -> None:
    for ends, seconds in {
        "a new connection that sends nothing": receiving.REQUEST_SECONDS,
        "a request that has started but not fully arrived, head and body together": receiving.REQUEST_SECONDS,
        "a response that the client does not read": receiving.ANSWER_SECONDS,
        "a connection that the client does not close after the last response": receiving.LEAVE_SECONDS,
        "connections without a whole request at shutdown": receiving.STOP_SECONDS,
        "a connection kept open between requests": chosen["keepalive"],
        "a request that waits for a lock": database.PATIENCE_SECONDS,
        "a list that reads too many rows": lists.SECONDS,
        "requests in progress at shutdown": chosen["graceful_timeout"],
        "a process whose main thread does not respond": chosen["timeout"],
    }.items():
        assert f"| {ends} | {seconds:g} s" in PAGE
    assert f"keeps up to {CONNECTIONS // 2} of them" in PAGE
    assert f"one short statement every {poller.LOOK_SECONDS:g} s" in PAGE
    assert f"at most {LONGEST_WAIT_SECONDS} s" in PAGE
    assert f"at most {LONGEST_FEED_SECONDS} s" in PAGE
    assert f"more than {chosen['limit_request_fields']} headers" in PAGE
    assert f"a head over {incoming.HEAD_BYTES // 1024} KiB" in PAGE
    assert f"keeps {CONNECTIONS} connections" in PAGE
    assert f"keeps {receiving.HELD_BYTES // 1024**2} MiB of requests" in PAGE
    assert f"a body over {BODY_BYTES // 1024} KiB" in PAGE
    assert f"has {rate_limit.WRONG_KEYS.burst:g} tries" in PAGE


def test_the_page_tells_of_rates_as_an_answer_does() -> None:
    share = Policy(Settings().rate_limit, Settings().rate_burst).share(Settings().api_workers)
    assert f'`"key";q={share.burst:g};w={share.window}`' in PAGE
    assert (
        f"with {Settings().api_workers} processes, 50 and 100 become {share.per_second:g} and {share.burst:g}" in PAGE
    )
