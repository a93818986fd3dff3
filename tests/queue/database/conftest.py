"""Claims in all lanes there are, and in lanes that a worker knows, find the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.claims.lanes import Lane

# In the order in which a claim that knows none visits them.
LANES = """
SELECT queue, priority FROM rowcall.job_runs WHERE finished_at IS NULL
GROUP BY queue, priority ORDER BY priority, min(run_at)
"""


@pytest.fixture(params=["all lanes", "known lanes"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim of the test is made in this way."""
    if request.param == "all lanes":
        return
    original = queue.claim

    def claim(connection: PgConnection, worker: str, asked: queue.ClaimRequest, *finished: Any) -> queue.ClaimResult:
        known = [Lane(row["queue"], row["priority"]) for row in fetch_all(connection, LANES)]
        return original(connection, worker, replace(asked, lanes=known), *finished)

    monkeypatch.setattr(queue, "claim", claim)
    monkeypatch.setattr(sys.modules["rowcall.queue.claims.exchange"], "claim", claim)
