"""Clients of the HTTP API that wait for runs or follow the feed, while something else is measured."""

from __future__ import annotations

import os
import selectors
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from tests.api.serving import Server, request, served

WAITERS = 500
FOLLOWERS = 200

# Runs that nobody drains; each waiter waits for one of them.
AWAITED = f"""
INSERT INTO rowcall.job_runs (job_type, run_at)
SELECT 'shop_nothing', now() + interval '1 year' FROM generate_series(1, {WAITERS})
"""

CHUNK_BYTES = 1024 * 1024


@contextmanager
def waiting(url: str) -> Iterator[None]:
    """Keep a request open for each of the awaited runs."""
    with database.transaction(url) as connection:
        rows = database.fetch_all(
            connection, "SELECT id FROM rowcall.job_runs WHERE run_at > now() + interval '1 day' ORDER BY id"
        )
    assert len(rows) == WAITERS
    with _kept_open(url, [f"/v1/runs/{row['id']}?wait=60" for row in rows]):
        yield


@contextmanager
def following(url: str) -> Iterator[None]:
    """Keep many clients of the feed, which read all of it."""
    with _kept_open(url, ["/v1/events?wait=300"] * FOLLOWERS):
        yield


@contextmanager
def _kept_open(url: str, targets: Sequence[str]) -> Iterator[None]:
    with database.transaction(url) as connection:
        name = f"bench-{len(api_keys.list_keys(connection))}"
        key = api_keys.create_key(connection, name, ["read"], Operator("bench"))
    with (
        tempfile.TemporaryDirectory() as folder,
        served({**os.environ, "DATABASE_URL": url}, Path(folder), ROWCALL_API_WORKERS="2") as server,
        ExitStack() as opened,
        _read(server, [request("GET", target, key) for target in targets], opened),
    ):
        yield


@contextmanager
def _read(server: Server, requests: Sequence[bytes], opened: ExitStack) -> Iterator[None]:
    """Send the requests, and read and drop what comes."""
    stopped = threading.Event()
    poller = opened.enter_context(selectors.DefaultSelector())
    for sent in requests:
        connection = opened.enter_context(server.connect())
        connection.sendall(sent)
        connection.setblocking(False)
        poller.register(connection, selectors.EVENT_READ)

    def read() -> None:
        while not stopped.is_set():
            for ready, _ in poller.select(timeout=0.1):
                if not os.read(ready.fd, CHUNK_BYTES):
                    poller.unregister(ready.fileobj)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    assert len(poller.get_map()) == len(requests), "some responses ended early"
