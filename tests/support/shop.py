"""The environment of the shop's processes, the runs that a test enqueues, and checks of what became of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from rowcall import queue
from rowcall.base import database
from tests.support.processes import APPS, ROOT, wait_until
from tests.support.rows import row_of

# Connections of workers and handlers; the tests' connections have other application names.
WORKERS_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^rowcall '"
)


class Shop:
    """A database, and the environment of the shop's processes."""

    def __init__(self, environment: dict[str, str], url: str) -> None:
        self.url = url
        self.environment = {
            **environment,
            "DATABASE_URL": url,
            "ROWCALL_APP": "shop",
            "PYTHONPATH": f"{APPS}:{ROOT}",
            "ROWCALL_POLL": "0.05",
            # Leases are as long as in production, so that a busy machine loses none; tests back-date them instead.
            "ROWCALL_HEARTBEAT": "0.2",
        }
        self.connect()
        self.sql("CREATE TABLE IF NOT EXISTS shipments (order_id bigint NOT NULL)")
        self.sql("CREATE TABLE IF NOT EXISTS bookings (order_id bigint NOT NULL)")

    def connect(self) -> None:
        """Open the connection again; all queries share it, because tests query often."""
        self._connection = database.connect(self.url)
        self._connection.autocommit = True

    def ask(self, job_type: str, **payload: Any) -> int:
        """Insert a run as enqueue would; the test process does not know the shop's types."""
        return self.ask_many(job_type, [payload])[0]

    def ask_many(self, job_type: str, payloads: list[dict[str, Any]], **columns: object) -> list[int]:
        """Insert many runs, and return their ids in the order of the payloads."""
        values = {"max_attempts": 3, **columns}
        rows = self.sql(
            f"INSERT INTO rowcall.job_runs (job_type, payload, {', '.join(values)})"
            f" SELECT %(job_type)s, payload, {', '.join(f'%({name})s' for name in values)}"
            " FROM unnest(%(payloads)s::jsonb[]) WITH ORDINALITY AS asked(payload, position) ORDER BY position"
            " RETURNING id",
            job_type=job_type,
            payloads=[json.dumps({"order_id": 1, "ends": "well", **payload}) for payload in payloads],
            **values,
        )
        return [row["id"] for row in rows]

    def row(self, run_id: int) -> dict[str, Any]:
        """Return the run's row."""
        return row_of(self._connection, run_id)

    def unsuccessful(self, run_id: int) -> list[str]:
        """Return the outcomes of the run's unsuccessful attempts, the first one first."""
        return [attempt["outcome"] for attempt in queue.attempts_of(self._connection, run_id)]

    def count(self, status: str) -> int:
        """Return how many runs have this status."""
        [counted] = self.sql("SELECT count(*) AS runs FROM rowcall.job_runs WHERE status = %(status)s", status=status)
        runs: int = counted["runs"]
        return runs

    def wait(self, run_id: int, status: str) -> dict[str, Any]:
        """Wait until the run has this status, and return its row."""
        wait_until(lambda: self.row(run_id)["status"] == status, f"run {run_id} is {status}")
        return self.row(run_id)

    def wait_for_more(self, runs: int, worker: subprocess.Popen[str] | None = None) -> None:
        """Return when this many more runs have succeeded, or when this worker has ended."""
        enough = self.count("succeeded") + runs
        wait_until(
            lambda: self.count("succeeded") >= enough or (worker is not None and worker.poll() is not None),
            f"{runs} more runs succeed",
        )

    def wait_for_all(self, runs: int) -> None:
        """Return when this many runs have succeeded since the test began."""
        wait_until(lambda: self.count("succeeded") >= runs, f"{runs} runs have succeeded")

    def wait_for_workers(self, number: int) -> None:
        """Return when this many workers have started, including those that have ended since."""
        wait_until(lambda: len(self.sql("SELECT id FROM rowcall.workers")) >= number, f"{number} workers have started")

    def wait_until_begun(self, run_id: int) -> None:
        """Return when the run's handler works; a run whose status is running may still wait for a thread."""
        wait_until(lambda: self.row(run_id)["progress"], f"the handler of run {run_id} reports progress")

    def wait_for_knock(self, run_id: int, lease_no: int = 1) -> None:
        """Return when the handler of shop_wait waits at the door of this lease."""
        knocked = self._door(run_id, f"{lease_no} knocked")
        wait_until(knocked.exists, f"the handler of run {run_id} has knocked")

    def open_door(self, run_id: int, lease_no: int = 1) -> None:
        """Let the handler of shop_wait with this lease continue."""
        self._door(run_id, f"{lease_no} open").touch()

    def _door(self, run_id: int, name: str) -> Path:
        return Path(self.row(run_id)["payload"]["doors"], name)

    def sql(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run one statement and commit."""
        return database.fetch_all(self._connection, statement, parameters)

    def expire_leases(self) -> None:
        """Back-date all leases, as if their time had passed without a heartbeat."""
        self.sql("UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'")

    def wait_for_the_server(self) -> None:
        """Return when the server has executed or cancelled the last statements of dead workers."""
        wait_until(lambda: not self.sql(WORKERS_BACKENDS), "the killed workers' connections are gone")


def kill(worker: subprocess.Popen[str]) -> None:
    """Kill it, as the kernel does when memory runs out."""
    worker.kill()
    worker.communicate()
