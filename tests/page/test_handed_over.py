"""A run that is handed over, on its screen: who has it, and what became of its messages."""

from __future__ import annotations

import re

from rowcall import queue
from rowcall.base.database import PgConnection
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Event, Status
from tests.page.conftest import Browse
from tests.page.test_run import ended
from tests.support.rows import run_in

HOLDER = holder_of("mail", "shop.tasks.send")
TASK = "the Celery task shop.tasks.send in queue mail"


def test_a_run_whose_message_waits_names_the_task_and_its_lost_messages(
    browse: Browse, committed: PgConnection
) -> None:
    sent = {"attempts": "1", "lease_no": "3", "started_at": "now() - interval '5 minutes'"}
    run_id = run_in(committed, Status.RUNNING, locked_by=f"'{HOLDER}'", **sent)["id"]
    for lease_no in (1, 2):
        ended(committed, run_id, lease_no, Event.EXPIRE, attempt=1)
    with committed.cursor() as cursor:
        cursor.execute("UPDATE rowcall.job_attempts SET worker = %s WHERE run_id = %s", (HOLDER, run_id))
    committed.commit()
    told = browse().get(f"/runs/{run_id}").text
    assert re.search(f"Attempt 1 was handed over to {TASK} [^,]+ ago ?, and waits for a consumer", told)
    assert f"Handed over as a message for {TASK}, lease 3, expires" in told
    assert len(re.findall(f"The message of attempt 1 for {TASK} was given up [^,]+ ago ?, after 30 s", told)) == 2
    assert "by a message" not in told
    assert "Retried" not in told


def test_a_run_that_a_consumer_has_begun_names_it(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.RUNNING, locked_by="'consumer host:7:abc'")["id"]
    text = browse().get(f"/runs/{run_id}").text
    assert "and is running on consumer host:7:abc" in text


def test_a_run_that_a_consumer_has_given_back_names_no_worker(browse: Browse, committed: PgConnection) -> None:
    run = run_in(committed, Status.RUNNING, locked_by=f"'{HOLDER}'", attempts="1", started_at="now()")
    message = queue.Lease(HOLDER, run["id"], run["lease_no"])
    assert queue.give_back(committed, message, "job type noop is not handed over here") is Status.QUEUED
    committed.commit()
    told = browse().get(f"/runs/{run['id']}").text
    assert re.search(
        r"Attempt 1 was given back [^,]+, after \S+ \S+ GivenBack job type noop is not handed over here", told
    )
