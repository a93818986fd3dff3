"""A run without its payload cannot run again: the refusal says what became of the payload, and what is possible."""

from __future__ import annotations

import pytest

from rowcall import queue
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection
from rowcall.base.errors import RunPruned
from rowcall.queue.retention.erase import erase
from rowcall.status import Status
from tests.support.rows import run_in

OPERATOR = Operator("tests")


def test_of_an_erased_run_no_payload_is_left_to_enqueue_again(connection: PgConnection) -> None:
    run = run_in(connection, Status.DEAD)
    erase(connection, [run["id"]], OPERATOR)
    with pytest.raises(
        RunPruned, match=r"\(its payload was erased on 20.*; allowed: enqueuing a new run with a new payl"
    ):
        queue.retry(connection, run["id"], OPERATOR)


def test_of_a_pruned_run_whose_fact_happens_only_once_nothing_can_be_done_again(connection: PgConnection) -> None:
    once = {"natural_key": "'invoice:7'", "unique_mode": "'ever'"}
    run = run_in(connection, Status.SUCCEEDED, pruned_at="'2026-03-29 12:00+00'", **once)
    with pytest.raises(RunPruned, match="allowed: nothing, because its natural key allows no second run"):
        queue.retry(connection, run["id"], OPERATOR)
