"""A run that is handed over, on its screen: who has it, and what became of its messages."""

from __future__ import annotations

from rowcall.base.database import PgConnection
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Event, Status
from tests.page.conftest import Browse
from tests.page.test_run import ended
from tests.support.rows import run_in

HOLDER = holder_of("mail", "shop.tasks.send")


def test_a_run_whose_message_waits_names_the_task_and_its_lost_messages(
    browse: Browse, committed: PgConnection
) -> None:
    run_id = run_in(committed, Status.RUNNING, locked_by=f"'{HOLDER}'", attempts="1", lease_no="3")["id"]
    for lease_no in (1, 2):
        ended(committed, run_id, lease_no, Event.EXPIRE, attempt=1)
    with committed.cursor() as cursor:
        cursor.execute("UPDATE rowcall.job_attempts SET worker = %s WHERE run_id = %s", (HOLDER, run_id))
    committed.commit()
    text = browse().get(f"/runs/{run_id}").text
    assert "Attempt 1 waits for a consumer" in text
    assert "a message for the Celery task shop.tasks.send in queue mail" in text
    assert text.count("Attempt 1 was handed over, and no consumer began it") == 2
    assert "Retried" not in text


def test_a_run_that_a_consumer_has_begun_names_it(browse: Browse, committed: PgConnection) -> None:
    run_id = run_in(committed, Status.RUNNING, locked_by="'consumer host:7:abc'")["id"]
    text = browse().get(f"/runs/{run_id}").text
    assert "is running" in text
    assert "Celery on host:7:abc" in text
