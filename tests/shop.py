"""The shop's side of a test: its environment, its requests, and what became of them."""

from __future__ import annotations

import json
from typing import Any

from shared import database
from tests.making import row_of
from tests.processes import APPS, ROOT, wait_until


class Shop:
    """A database, and the environment of processes that work for the shop on it."""

    def __init__(self, environment: dict[str, str], url: str) -> None:
        self.url = url
        self.environment = {
            **environment,
            "DATABASE_URL": url,
            "ROWCALL_APP": "shop",
            "PYTHONPATH": f"{APPS}:{ROOT}",
            "ROWCALL_POLL": "0.05",
            # Leases stay as long as in life, so that a busy machine loses none; tests back-date them instead.
            "ROWCALL_HEARTBEAT": "0.2",
        }

    def ask(self, job_type: str, **payload: Any) -> int:
        """A run, written as enqueue would write it; the tests' own process does not know the shop's types."""
        with database.transaction(self.url) as connection:
            run_id: int = database.fetch_value(
                connection,
                "INSERT INTO job_runs (job_type, payload, max_attempts) VALUES (%(job_type)s, %(payload)s, 3)"
                " RETURNING id",
                {"job_type": job_type, "payload": json.dumps({"order_id": 1, "ends": "well", **payload})},
            )
        return run_id

    def row(self, run_id: int) -> dict[str, Any]:
        """The run as it stands."""
        with database.transaction(self.url) as connection:
            return row_of(connection, run_id)

    def wait(self, run_id: int, status: str) -> dict[str, Any]:
        """The run, as soon as it has this status."""
        wait_until(lambda: self.row(run_id)["status"] == status, f"run {run_id} is {status}")
        return self.row(run_id)

    def sql(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run one statement and commit."""
        with database.transaction(self.url) as connection:
            return database.fetch_all(connection, statement, parameters)
