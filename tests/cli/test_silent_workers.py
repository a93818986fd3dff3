"""`rowcall runs cancel` of a run whose worker is silent, or that has none."""

from __future__ import annotations

import pytest

from rowcall.base import database
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.rows import run_in

HOLDER = holder_of("mail", "shop.tasks.send")


@pytest.mark.parametrize(
    ("lease_ends", "otherwise"),
    [("1 hour", "otherwise another worker cancels it after its lease ends at"), ("-1 hour", "its lease ended at")],
)
def test_asked_to_cancel_it_the_command_says_since_when_and_what_cancels_it_now(
    environment: dict[str, str], fresh_url: str, lease_ends: str, otherwise: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    with database.transaction(fresh_url) as connection:
        until = f"now() + interval '{lease_ends}'"
        run = run_in(connection, Status.RUNNING, locked_by="'dead'", locked_until=until)["id"]
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.workers (id, hostname, pid, version, job_types, concurrency, heartbeat_at)"
            " VALUES ('dead', 'h', 1, '1', '{noop}', 1, '2026-01-02 03:04:05Z')",
        )
    told = " ".join(rowcall(here, "runs", "cancel", str(run)).stdout.split())
    assert told.startswith(f"run {run} is running, but its worker has been silent since 2026-01-02 03:04")
    assert f"`rowcall runs cancel {run} --force` cancels it now" in told
    assert otherwise in told


def test_asked_to_cancel_a_run_whose_message_waits_the_command_says_who_will_be_told(
    environment: dict[str, str], fresh_url: str
) -> None:
    with database.transaction(fresh_url) as connection:
        run = run_in(connection, Status.RUNNING, locked_by=f"'{HOLDER}'")["id"]
    told = " ".join(rowcall({**environment, "DATABASE_URL": fresh_url}, "runs", "cancel", str(run)).stdout.split())
    assert told == (
        f"run {run} is running: its message waits, and the consumer that receives it cancels the run; `rowcall runs"
        f" cancel {run} --force` cancels it now"
    )
