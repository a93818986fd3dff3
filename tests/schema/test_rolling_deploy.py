"""A rolling deploy: this code keeps working under load while the next one migrates the database, and afterwards."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.schema import REVISION
from tests.api.serving import served
from tests.schema.catalogue import asked
from tests.schema.newer import INDEX_IS_VALID, NEXT, newer_rowcall
from tests.support.processes import LIMIT_SECONDS, rowcall, running, wait_until

CLIENTS = 2
SUCCEEDED = "SELECT count(*) AS runs FROM rowcall.job_runs WHERE status = 'succeeded'"


@dataclass
class Load:
    """Clients that enqueue runs by HTTP, one after another, and request /readyz in between."""

    port: int
    key: str
    statuses: list[int] = field(default_factory=list)
    run_ids: list[int] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the clients."""
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the clients after their current requests."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(LIMIT_SECONDS)

    def _ask(self) -> None:
        while not self._stopped.is_set():
            status, answer = self._request("POST", "/v1/runs", {"job_type": "noop"})
            self.statuses.append(status)
            self.run_ids.append(answer.get("id", 0))
            self.statuses.append(self._request("GET", "/readyz")[0])

    def _request(self, method: str, path: str, body: dict[str, str] | None = None) -> tuple[int, dict[str, int]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        return answer.status, content


@pytest.fixture
def ours(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """Return the environment of this code's processes."""
    return {**environment, "DATABASE_URL": fresh_url, "ROWCALL_POLL": "0.05"}


@pytest.fixture
def load(ours: dict[str, str], tmp_path: Path) -> Iterator[Load]:
    """Run this code's API and worker, with as many requests as they answer."""
    with database.transaction(ours["DATABASE_URL"]) as connection:
        key = api_keys.create_key(connection, "load", ["enqueue", "read"], Operator("tests"))
    with served(ours, tmp_path) as server, running(ours, "worker", "run"):
        load = Load(server.port, key)
        load.start()
        yield load
        load.stop()


def succeeded(url: str) -> int:
    [counted] = asked(url, SUCCEEDED)
    runs: int = counted["runs"]
    return runs


def wait_for_more(url: str, load: Load) -> None:
    """Return when the API has accepted more runs, and the worker has done more, than until now."""
    taken, done = len(load.run_ids), succeeded(url)
    wait_until(lambda: len(load.run_ids) > taken + 20 and succeeded(url) > done + 20, "more runs are enqueued and done")


def test_the_older_code_serves_and_works_on_while_the_newer_one_migrates(
    load: Load, ours: dict[str, str], fresh_url: str, tmp_path: Path
) -> None:
    newer = newer_rowcall(tmp_path / "newer", ours)
    wait_for_more(fresh_url, load)
    migrated = rowcall(newer, "migrate")
    assert f"is now {NEXT}" in migrated.stdout, migrated.stderr
    assert asked(fresh_url, INDEX_IS_VALID) == [{"indisvalid": True}]
    wait_for_more(fresh_url, load)
    # Both versions work at the same time, including processes that start only now.
    for environment in (newer, ours):
        assert rowcall(environment, "worker", "once", "--limit", "5").returncode == 0
    wait_for_more(fresh_url, load)
    load.stop()
    assert set(load.statuses) == {200, 202}
    wait_until(lambda: succeeded(fresh_url) == len(load.run_ids), "every enqueued run is done")
    # A run that a busy worker gave back, because another could begin it, has a second lease and one attempt.
    done = asked(fresh_url, "SELECT id FROM rowcall.job_runs WHERE status = 'succeeded' AND attempts = 1")
    assert sorted(row["id"] for row in done) == sorted(load.run_ids)


def test_the_older_codes_commands_go_on_and_its_migrate_takes_nothing_back(
    ours: dict[str, str], fresh_url: str, tmp_path: Path
) -> None:
    assert rowcall(newer_rowcall(tmp_path, ours), "migrate").returncode == 0
    assert rowcall(ours, "runs", "list").returncode == 0
    assert rowcall(ours, "prune", "--dry-run").returncode == 0
    migrated = rowcall(ours, "migrate")
    told = f"the schema is {NEXT}, newer than this code ({REVISION}), which still fits it: nothing to do\n"
    assert (migrated.returncode, migrated.stdout) == (0, told)
    assert asked(fresh_url, INDEX_IS_VALID) == [{"indisvalid": True}]


def test_where_the_newer_one_says_that_it_does_not_fit_the_older_code_refuses_to_start(
    ours: dict[str, str], tmp_path: Path
) -> None:
    assert rowcall(newer_rowcall(tmp_path, ours, fits=NEXT), "migrate").returncode == 0
    for command in (["worker", "once"], ["api", "--port", "0"], ["runs", "list"], ["prune", "--yes"], ["migrate"]):
        refused = rowcall(ours, *command)
        assert refused.returncode == 1, command
        assert f"is {NEXT}, too new for this code ({REVISION})" in refused.stderr, command
        assert "Traceback" not in refused.stderr
