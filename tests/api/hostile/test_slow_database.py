"""A slow database blocks all threads of the API: the process still reports that it is alive."""

from __future__ import annotations

import select
from contextlib import ExitStack
from pathlib import Path

from rowcall.base import database
from tests.api.conftest import There
from tests.api.serving import JSON, request, send, served
from tests.support.locks import wait_for_a_waiting_session

THREADS = 2


def test_a_process_whose_threads_all_wait_for_the_database_says_that_it_is_alive(
    module_url: str, keys: dict[str, str], there: There, tmp_path: Path
) -> None:
    environment = {"DATABASE_URL": module_url, "PATH": "", "ROWCALL_API_WORKERS": "1"}
    enqueue = request("POST", "/v1/runs", keys["enqueue"], JSON, body=b'{"job_type": "noop"}')
    with (
        served(environment, tmp_path, ROWCALL_API_THREADS=str(THREADS)) as server,
        ExitStack() as clients,
        database.transaction(module_url) as holder,
    ):
        database.fetch_all(holder, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        waiting = [clients.enter_context(server.connect()) for _ in range(3 * THREADS)]
        for client in waiting:
            send(client, enqueue)
        wait_for_a_waiting_session(module_url, THREADS)
        for target in ("/healthz", "/healthz?now"):
            assert server.ask(f"GET {target} HTTP/1.1\r\nHost: here\r\n\r\n".encode()).status == 200
        assert not select.select(waiting, [], [], 0)[0], "one of them was already answered"
