"""`POST /v1/runs` beside plain Flask routes that insert a row: each with one process and as many threads."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from rowcall.access.api_keys import create_key
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.child_processes import own_command
from tests.bench.measures import Bench
from tests.support.processes import wait_until

REQUESTS = 2_000
THREADS = 4
CLIENTS = 4

BODY = json.dumps({"job_type": "shop_nothing", "payload": {"order_id": 7}})


def plain(bench: Bench) -> float:
    """Return requests per second of the plain route."""
    return _rate(bench, lambda port: _gunicorn(port, "tests.bench.plain_api:app"))


def alike(bench: Bench) -> float:
    """Return requests per second of a plain route with the duties of Rowcall's, and without its guards."""
    return _rate(bench, lambda port: _gunicorn(port, "tests.bench.alike_api:app"))


def posted(bench: Bench) -> float:
    """Return requests per second of Rowcall's API."""
    return _rate(bench, lambda port: own_command("api", "--port", str(port)))


def _gunicorn(port: int, app: str) -> list[str]:
    return [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", str(THREADS), app]


def _rate(bench: Bench, command_for: Callable[[int], Sequence[str]]) -> float:
    port = _free_port()
    command = command_for(port)
    with database.transaction(bench.url) as connection:
        key = create_key(connection, f"bench-{port}", ["enqueue"], Operator("bench", "bench"))
    bench.fill(0)
    settings = {"ROWCALL_API_WORKERS": "1", "ROWCALL_API_THREADS": str(THREADS), "ROWCALL_RATE_LIMIT": "0"}
    environment = {**os.environ, **settings, "DATABASE_URL": bench.url, "ROWCALL_LOG_LEVEL": "warning"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: _answers(port), "the server listens")
            _post(port, key, 20)
            threads = [threading.Thread(target=_post, args=(port, key, REQUESTS // CLIENTS)) for _ in range(CLIENTS)]
            began = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return REQUESTS / (time.monotonic() - began)
        finally:
            server.terminate()


def _post(port: int, key: str, count: int) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as client:
        for _ in range(count):
            client.request("POST", "/v1/runs", BODY, headers)
            response = client.getresponse()
            body = response.read()
            assert response.status in (201, 202), body


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
