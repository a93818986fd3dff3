"""The bakery's tests, which specify the fixture `rowcall`; tests/worker/testing runs them the way a team would."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import flask
import pytest

from rowcall.base.errors import RowcallError, RunInvalid
from rowcall_worker.testing import Declined, OutcomeUnknown, Rowcall, Unavailable

from .job_types import BAKE, CHARGE, CLEAN, NARROW, NIGHTLY, NOTIFY, PRINT, REMIND

# Perform


def test_a_run_is_performed_and_its_result_is_seen(rowcall: Rowcall) -> None:
    done = rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7}))
    assert (done.status, done.result) == ("succeeded", {"baked": 7, "attempt": 1})
    assert (done.attempts, done.error, done.effects, done.failed_attempts) == (1, None, [], [])


def test_without_an_id_the_longest_due_run_is_performed(rowcall: Rowcall) -> None:
    first, second = (rowcall.enqueue(BAKE, {"loaf_id": number}) for number in (1, 2))
    assert [rowcall.perform().run_id, rowcall.perform().run_id] == [first, second]


def test_a_run_is_performed_before_those_that_are_due_longer(rowcall: Rowcall) -> None:
    first, second = (rowcall.enqueue(BAKE, {"loaf_id": number}) for number in (1, 2))
    assert rowcall.perform(second).status == "succeeded"
    assert rowcall.run(first).status == "queued"


def test_a_run_under_a_limit_is_performed_by_its_id(rowcall: Rowcall) -> None:
    first, second = (rowcall.enqueue(NARROW, {"loaf_id": number}) for number in (1, 2))
    assert rowcall.perform(second).status == rowcall.perform(first).status == "succeeded"


def test_drain_performs_what_the_handlers_enqueue(rowcall: Rowcall) -> None:
    rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "with another"})
    assert [done.job_type for done in rowcall.drain()] == ["bakery_bake", "bakery_remind"]
    assert rowcall.drain() == []


def test_a_drain_without_an_end_ends(rowcall: Rowcall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall_worker.testing.kit.DRAINED_MOST", 5)
    rowcall.enqueue(BAKE, {"loaf_id": 1, "ends": "over and over"})
    with pytest.raises(
        RowcallError, match=r"5 attempts were made, the limit of drain\(\): does bakery_bake enqueue itself"
    ):
        rowcall.drain()


def test_a_run_that_is_not_due_says_so(rowcall: Rowcall) -> None:
    later = rowcall.enqueue(BAKE, {"loaf_id": 7}, run_at=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(
        RowcallError, match=rf"run {later} of bakery_bake is queued and .*: not due until .*rowcall.advance"
    ):
        rowcall.perform(later)
    with pytest.raises(RowcallError, match=rf"nothing is due; waiting: run {later} bakery_bake \(due"):
        rowcall.perform()


def test_a_run_that_has_ended_says_so(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(BAKE, {"loaf_id": 7})
    rowcall.perform(run_id)
    with pytest.raises(RowcallError, match=rf"run {run_id} of bakery_bake has succeeded"):
        rowcall.perform(run_id)
    with pytest.raises(RowcallError, match="nothing is due; no run is waiting"):
        rowcall.perform()


def test_a_handler_has_a_thread_of_its_own_without_the_tests_app_context(rowcall: Rowcall) -> None:
    with flask.Flask("bakery").app_context():
        assert rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 1, "ends": "in Flask"})).result == {"in Flask": False}


def test_a_handler_that_waits_for_what_the_test_has_locked_does_not_wait_for_ever(rowcall: Rowcall) -> None:
    with rowcall.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("10s",)


def test_rows_and_success_are_one_commit(rowcall: Rowcall) -> None:
    assert rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "in the table"})).result == {"baked": 1}
    with rowcall.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM loaves")
        assert cursor.fetchall() == [(7,)]


def test_what_is_logged_is_seen(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(BAKE, {"loaf_id": 7})
    rowcall.perform(run_id)
    assert [(line["event"], line["run_id"], line["loaf_id"]) for line in rowcall.log] == [("loaf baked", run_id, 7)]


def test_what_is_kept_of_its_log_is_seen_with_the_run(rowcall: Rowcall) -> None:
    done = rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7}))
    assert [(line["level"], line["text"]) for line in done.log] == [("info", "loaf baked loaf_id=7")]


def test_an_effect_of_a_kind_of_the_apps_own_happens_once(rowcall: Rowcall) -> None:
    done = rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "with a text"}))
    assert done.result == {"reference": "baked:7"}
    assert [(effect["kind"], effect["key"], effect["state"]) for effect in done.effects] == [
        ("sms", "baked:7", "applied")
    ]


# Errors are the same as in production


@pytest.mark.parametrize(
    ("ends", "status", "error_type", "error"),
    [
        ("badly", "failed", "ValueError", "the loaf is burnt"),
        ("from its base", "failed", "GeneratorExit", "the fire is out"),
        ("interrupted", "failed", "KeyboardInterrupt", "the baker left"),
        ("for good", "dead", "Permanent", "no flour"),
        ("later", "failed", "Retry", "the oven is cold"),
        ("unstorable", "dead", "Permanent", "cannot be stored"),
        ("too large", "dead", "Permanent", "cannot be stored"),
        ("unknown effect", "dead", "EffectInvalid", "sent_pigeons"),
    ],
)
def test_an_attempt_ends_as_a_worker_would_end_it(
    rowcall: Rowcall, ends: str, status: str, error_type: str, error: str
) -> None:
    done = rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": ends}))
    assert (done.status, done.error_type) == (status, error_type)
    assert error in str(done.error)
    assert [attempt["attempt"] for attempt in done.failed_attempts] == [1]


def test_a_payload_that_the_schema_refuses_is_refused(rowcall: Rowcall) -> None:
    with pytest.raises(RunInvalid, match="loaf_id"):
        rowcall.enqueue(BAKE, {"loaf": 7})


def test_an_unexpected_error_can_be_raised(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "badly"})
    with pytest.raises(ValueError, match="the loaf is burnt"):
        rowcall.perform(run_id, reraise=True)
    assert rowcall.run(run_id).status == "failed"
    rowcall.enqueue(BAKE, {"loaf_id": 8, "ends": "later"})
    [done] = rowcall.drain(reraise=True)
    assert repr(done.exception) == "Retry('the oven is cold')"


# Time


def test_a_retry_is_due_after_its_backoff(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "later"})
    rowcall.perform(run_id)
    rowcall.advance(minutes=29)
    assert rowcall.drain() == []
    rowcall.advance(minutes=1)
    assert rowcall.perform(run_id).attempts == 2


def test_a_snooze_and_a_later_run_become_due(rowcall: Rowcall) -> None:
    snoozed = rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "not yet"})
    assert rowcall.perform(snoozed).status == "queued"
    later = rowcall.enqueue(BAKE, {"loaf_id": 8}, run_at=datetime.now(UTC) + timedelta(days=3))
    rowcall.advance(hours=4)
    assert [done.run_id for done in rowcall.drain()] == [snoozed]
    rowcall.advance(days=3)
    assert [done.run_id for done in rowcall.drain()] == [snoozed, later]


def test_a_schedules_next_time_comes_once_each_time_it_is_asked_for(rowcall: Rowcall) -> None:
    days = []
    for _ in range(3):
        done = rowcall.perform(rowcall.advance_to(NIGHTLY))
        assert f"{done.row['scheduled_for']:%Y-%m-%d}" == done.result["cleaned"]
        days.append(datetime.fromisoformat(done.result["cleaned"]))
    assert [after - before for before, after in itertools.pairwise(days)] == [timedelta(days=1)] * 2


def test_a_schedule_that_makes_no_run_says_why(rowcall: Rowcall) -> None:
    run_id = rowcall.advance_to("clean-nightly")
    with pytest.raises(RowcallError, match=rf"enqueued no run: skipped: run {run_id} is not finished yet"):
        rowcall.advance_to(NIGHTLY)
    with pytest.raises(RowcallError, match="no definition .*your job_types declare clean-nightly"):
        rowcall.advance_to("clean-daily")


def test_schedules_stand_still_while_time_passes(rowcall: Rowcall) -> None:
    rowcall.advance(days=400)
    rowcall.assert_none_enqueued(CLEAN)


def test_time_only_goes_forward(rowcall: Rowcall) -> None:
    with pytest.raises(ValueError, match="time only goes forward: advance was given -60 seconds"):
        rowcall.advance(minutes=-1)
    with pytest.raises(ValueError, match="advance was given 10000 days; it moves at most 3650 days at a time"):
        rowcall.advance(days=10_000)


def test_a_payment_is_not_repeated_beyond_the_providers_memory(rowcall: Rowcall) -> None:
    run_id = rowcall.enqueue(CHARGE, {"loaf_id": 7})
    rowcall.gateways.payment.fail_next(OutcomeUnknown("no answer"), acted=True)
    rowcall.perform(run_id)
    rowcall.advance(days=2)
    assert (rowcall.perform(run_id).error_type, len(rowcall.gateways.payment.charged)) == ("AmbiguousEffect", 1)


# Gateways


def test_a_mail_is_kept_as_its_receiver_has_it(rowcall: Rowcall) -> None:
    done = rowcall.perform(rowcall.enqueue(REMIND, {"loaf_id": 7}))
    [mail] = rowcall.gateways.mail.sent
    assert (mail.to, mail.subject, mail.text.strip()) == ("ada@example.com", "Käse & Brot", "It is ready.")
    [effect] = done.effects
    assert (effect["kind"], effect["state"], effect["reference"]) == (
        "sent_emails",
        "applied",
        "250 kept as 1",
    )


def test_a_mail_that_cannot_be_sent_now_is_sent_by_the_next_attempt(rowcall: Rowcall) -> None:
    rowcall.gateways.mail.fail_next(Unavailable("the mail server is down"))
    run_id = rowcall.enqueue(REMIND, {"loaf_id": 7})
    assert (rowcall.perform(run_id).error, rowcall.gateways.mail.sent) == ("the mail server is down", [])
    rowcall.advance(hours=1)
    assert (rowcall.perform(run_id).status, len(rowcall.gateways.mail.sent)) == ("succeeded", 1)


def test_a_mail_without_an_answer_is_sent_once_and_left_to_an_operator(rowcall: Rowcall) -> None:
    rowcall.gateways.mail.fail_next(OutcomeUnknown("no answer"), acted=True)
    done = rowcall.perform(rowcall.enqueue(REMIND, {"loaf_id": 7}))
    assert (done.status, done.error_type, len(rowcall.gateways.mail.sent)) == ("dead", "AmbiguousEffect", 1)
    assert [effect["state"] for effect in done.effects] == ["unknown"]


def test_a_declined_payment_is_dead(rowcall: Rowcall) -> None:
    rowcall.gateways.payment.fail_next(Declined("insufficient funds"))
    done = rowcall.perform(rowcall.enqueue(CHARGE, {"loaf_id": 7}))
    assert (done.status, done.error_type, rowcall.gateways.payment.charged) == ("dead", "Declined", [])
    assert [effect["state"] for effect in done.effects] == ["refused"]


def test_a_payment_without_an_answer_is_charged_once_under_its_key(rowcall: Rowcall) -> None:
    rowcall.gateways.payment.fail_next(OutcomeUnknown("no answer"), acted=True)
    run_id = rowcall.enqueue(CHARGE, {"loaf_id": 7})
    assert rowcall.perform(run_id).status == "failed"
    rowcall.advance(minutes=1)
    assert rowcall.perform(run_id).status == "succeeded"
    assert [charge.amount for charge in rowcall.gateways.payment.charged] == [700]


def test_an_amount_that_no_provider_takes_is_refused(rowcall: Rowcall) -> None:
    assert rowcall.perform(rowcall.enqueue(CHARGE, {"loaf_id": 0})).error_type == "Unusable"


def test_a_webhook_is_kept_with_its_signature(rowcall: Rowcall) -> None:
    rowcall.perform(rowcall.enqueue(NOTIFY, {"loaf_id": 7}))
    [event] = rowcall.gateways.webhook.delivered
    assert (event.url, event.event_id, event.payload) == ("https://cafe.example/loaves", "loaf-7", {"loaf": 7})
    assert event.headers["webhook-signature"].startswith("v1,")


def test_a_webhook_to_this_machine_is_blocked(rowcall: Rowcall) -> None:
    assert rowcall.perform(rowcall.enqueue(NOTIFY, {"loaf_id": 7, "ends": "at home"})).error_type == "Blocked"


def test_a_file_is_written_and_an_isolated_run_is_seen_here(rowcall: Rowcall) -> None:
    rowcall.gateways.files.fail_next(Unavailable("the disk is full"))
    run_id = rowcall.enqueue(PRINT, {"loaf_id": 7})
    assert (rowcall.perform(run_id).error, rowcall.gateways.files.written) == ("the disk is full", [])
    rowcall.advance(minutes=1)
    rowcall.perform(run_id)
    assert [file.path for file in rowcall.gateways.files.written] == ["labels/7.txt"]
    with rowcall.gateways.files.open("labels/7.txt") as file:
        assert file.read() == b"Sourdough"


def test_a_gateway_fails_with_an_error_of_gateways_only(rowcall: Rowcall) -> None:
    with pytest.raises(
        TypeError, match=r"takes an error listed in docs/gateways.md, such as Unavailable.*not ValueError"
    ):
        rowcall.gateways.mail.fail_next(ValueError("no"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Declined means that nothing happened"):
        rowcall.gateways.payment.fail_next(Declined("no"), acted=True)


def test_a_run_that_was_given_up_is_tried_again_as_an_operator_would(rowcall: Rowcall) -> None:
    rowcall.gateways.payment.fail_next(Declined("no"))
    run_id = rowcall.enqueue(CHARGE, {"loaf_id": 7})
    assert rowcall.perform(run_id).status == "dead"
    with pytest.raises(RowcallError, match=r"rowcall\.retry\(\) queues it again"):
        rowcall.perform(run_id)
    rowcall.retry(run_id)
    assert rowcall.perform(run_id).status == "dead"  # the provider repeats its answer for the same key
