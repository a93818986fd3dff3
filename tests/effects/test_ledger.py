"""The ledger: an effect begins under a lease, is settled under it, and never happens twice."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from psycopg2.errors import LockNotAvailable

from rowcall import effects
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import EffectInvalid, LeaseLost, Refused
from rowcall.effects import KINDS, Decision
from rowcall.queue import Lease
from tests.effects.attempts import (
    CONTENT,
    HOUR,
    KEYS,
    MAIL,
    NUDGE,
    PAYMENT,
    PERFORMED,
    REFUND,
    SMS,
    STALE,
    WEBHOOK,
    begun,
    failed,
    lease_of,
    next_attempt,
    stale,
    stored,
)


@pytest.mark.parametrize("kind", PERFORMED, ids=lambda kind: kind.name)
def test_the_first_to_want_an_effect_performs_it_and_the_next_finds_it_done(
    connection: PgConnection, lease: Lease, kind: effects.Kind
) -> None:
    decision, effect = begun(connection, lease, kind)
    assert (decision, effect.state, effect.again) == (Decision.PERFORM, "intent", False)
    effects.applied(connection, lease, effect, "ref-1", {})
    decision, found = begun(connection, next_attempt(connection, lease), kind)
    assert (decision, found.state, found.reference, found.id) == (Decision.DONE, "applied", "ref-1", effect.id)


def test_what_is_known_before_and_learned_after_is_kept_with_it(connection: PgConnection, lease: Lease) -> None:
    _, effect = begun(connection, lease)
    effects.applied(connection, lease, effect, "250 queued", {"message_id": effect.message_id})
    row = stored(connection)
    assert (row["recipient"], row["subject"]) == ("a@example.com", "Hello")
    assert (row["message_id"], row["provider_reference"]) == (effect.message_id, "250 queued")
    assert (row["run_id"], row["lease_no"], row["applied_at"] is not None) == (lease.run_id, lease.lease_no, True)


@pytest.mark.parametrize("how", STALE)
def test_a_stale_lease_begins_nothing(connection: PgConnection, lease: Lease, how: str) -> None:
    with pytest.raises(LeaseLost):
        begun(connection, stale(connection, lease, how))
    assert fetch_all(connection, "SELECT * FROM rowcall.sent_emails") == []


@pytest.mark.parametrize("how", STALE)
def test_a_stale_lease_settles_nothing(connection: PgConnection, lease: Lease, how: str) -> None:
    _, effect = begun(connection, lease)
    before = stored(connection)
    lost = stale(connection, lease, how)
    with pytest.raises(LeaseLost):
        effects.applied(connection, lost, effect, "ref", {})
    with pytest.raises(LeaseLost):
        failed(connection, lost, effect, Refused("no"))
    with pytest.raises(LeaseLost):
        effects.record(connection, lost, KINDS["sent_reports"], {"user_id": 1, "week_start_date": "2026-03-23"}, {})
    assert stored(connection) == before


def test_an_effect_that_another_attempt_took_over_is_not_settled_by_the_first(
    connection: PgConnection, lease: Lease
) -> None:
    _, effect = begun(connection, lease, WEBHOOK)
    later = next_attempt(connection, lease)
    assert begun(connection, later, WEBHOOK)[0] is Decision.PERFORM
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET lease_no = %(n)s WHERE id = %(id)s", {"n": 3, "id": lease.run_id}
    )
    with pytest.raises(LeaseLost):
        effects.applied(connection, lease, effect, "ref", {})


@pytest.mark.parametrize("kind", PERFORMED, ids=lambda kind: kind.name)
def test_the_same_key_with_other_content_is_a_conflict(
    connection: PgConnection, lease: Lease, kind: effects.Kind
) -> None:
    begun(connection, lease, kind)
    decision, _ = effects.begin(connection, lease, kind, KEYS[kind.name], {**CONTENT, "subject": "Goodbye"})
    assert decision is Decision.CONFLICT


GAPS = [
    (MAIL, Decision.AMBIGUOUS, "unknown"),
    (SMS, Decision.AMBIGUOUS, "unknown"),
    (WEBHOOK, Decision.PERFORM, "intent"),
    (NUDGE, Decision.PERFORM, "intent"),
    (KINDS["generated_files"], Decision.PERFORM, "intent"),
    (PAYMENT, Decision.PERFORM, "intent"),
    (REFUND, Decision.PERFORM, "intent"),
]


@pytest.mark.parametrize(("kind", "decision", "state"), GAPS)
def test_an_intent_that_an_earlier_attempt_left_goes_by_the_policy(
    connection: PgConnection,
    lease: Lease,
    kind: effects.Kind,
    decision: Decision,
    state: str,
) -> None:
    _, first = begun(connection, lease, kind)
    found = begun(connection, next_attempt(connection, lease), kind, horizon=HOUR)
    assert (found[0], found[1].state) == (decision, state)
    if decision is Decision.PERFORM:
        assert found[1].again
        assert (found[1].id, found[1].message_id, found[1].intent_at) == (first.id, first.message_id, first.intent_at)
        assert found[1].idempotency_key == first.idempotency_key


def test_a_payment_is_not_repeated_when_the_provider_may_have_forgotten_the_key(
    connection: PgConnection, lease: Lease
) -> None:
    begun(connection, lease, PAYMENT, horizon=HOUR)
    fetch_all(connection, "UPDATE rowcall.payments SET intent_at = now() - interval '61 minutes'")
    decision, effect = begun(connection, next_attempt(connection, lease), PAYMENT, horizon=HOUR)
    assert (decision, effect.state) == (Decision.AMBIGUOUS, "unknown")


def test_the_horizon_counts_from_the_first_try(connection: PgConnection, lease: Lease) -> None:
    begun(connection, lease, PAYMENT, horizon=HOUR)
    fetch_all(connection, "UPDATE rowcall.payments SET intent_at = now() - interval '59 minutes'")
    lease = next_attempt(connection, lease)
    assert begun(connection, lease, PAYMENT, horizon=HOUR)[0] is Decision.PERFORM
    fetch_all(connection, "UPDATE rowcall.payments SET intent_at = intent_at - interval '2 minutes'")
    assert begun(connection, next_attempt(connection, lease), PAYMENT, horizon=HOUR)[0] is Decision.AMBIGUOUS


@pytest.mark.parametrize("kind", PERFORMED, ids=lambda kind: kind.name)
def test_while_another_run_is_at_it_nobody_else_is(connection: PgConnection, lease: Lease, kind: effects.Kind) -> None:
    begun(connection, lease, kind)
    other = lease_of(connection)
    decision, effect = begun(connection, other, kind, horizon=HOUR)
    assert (decision, effect.run_id) == (Decision.BUSY, lease.run_id)
    stale(connection, lease, "not running")
    assert begun(connection, other, kind, horizon=HOUR)[0] is not Decision.BUSY


def test_what_is_unknown_stays_so_for_every_later_attempt(connection: PgConnection, lease: Lease) -> None:
    begun(connection, lease)
    lease = next_attempt(connection, lease)
    assert begun(connection, lease)[0] is Decision.AMBIGUOUS
    assert begun(connection, next_attempt(connection, lease))[0] is Decision.AMBIGUOUS


def test_of_two_runs_at_once_one_performs_and_the_other_waits_for_its_word(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        leases = [lease_of(making), lease_of(making)]
    decisions: list[Decision] = []
    one, other = database.connect(fresh_url), database.connect(fresh_url)
    assert begun(one, leases[0], PAYMENT)[0] is Decision.PERFORM
    second = threading.Thread(target=lambda: decisions.append(begun(other, leases[1], PAYMENT)[0]))
    second.start()
    one.commit()
    second.join()
    other.close()
    one.close()
    assert decisions == [Decision.BUSY]


def test_an_intent_that_was_rolled_back_leaves_the_effect_to_the_next(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        leases = [lease_of(making), lease_of(making)]
    decisions: list[Decision] = []
    one, other = database.connect(fresh_url), database.connect(fresh_url)
    begun(one, leases[0], PAYMENT)
    second = threading.Thread(target=lambda: decisions.append(begun(other, leases[1], PAYMENT)[0]))
    second.start()
    one.rollback()
    second.join()
    other.close()
    one.close()
    assert decisions == [Decision.PERFORM]


def test_a_lease_cannot_end_between_an_intent_and_its_commit(fresh_url: str) -> None:
    with database.transaction(fresh_url) as making:
        lease = lease_of(making)
    with database.transaction(fresh_url) as one, database.transaction(fresh_url) as other:
        begun(one, lease)
        fetch_all(other, "SET LOCAL lock_timeout = 100")
        with pytest.raises(LockNotAvailable):
            fetch_all(other, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1")


def test_an_effect_of_the_runs_own_transaction_is_written_once(connection: PgConnection, lease: Lease) -> None:
    report, key = KINDS["sent_reports"], {"user_id": 7, "week_start_date": "2026-03-23"}
    assert effects.record(connection, lease, report, key, {}, reference="mail 5")
    assert not effects.record(connection, lease, report, key, {})
    assert (stored(connection, report)["state"], stored(connection, report)["provider_reference"]) == (
        "applied",
        "mail 5",
    )


@pytest.mark.parametrize(
    ("kind", "content", "details", "complaint"),
    [
        (MAIL, {"a": object()}, {}, "cannot be written as JSON: object is not JSON"),
        (MAIL, {"a": float("nan")}, {}, "cannot be written as JSON"),
        (SMS, "hello", {}, "the content of sms is 'hello' and must be a mapping"),
        (SMS, {}, {"recipient": "1"}, "sms has no column 'recipient' for details"),
        (PAYMENT, {"amount_minor": "much"}, {}, 'payments cannot store these values: .* bigint: "much"'),
        (PAYMENT, {"amount_minor": 2**63}, {}, "payments cannot store these values: bigint out of range"),
    ],
)
def test_what_is_no_effect_is_refused_with_a_reason(
    connection: PgConnection, lease: Lease, kind: effects.Kind, content: Any, details: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(EffectInvalid, match=complaint):
        effects.begin(connection, lease, kind, KEYS[kind.name], content, details)


def test_what_is_kept_for_people_to_see_is_kept_up_to_2000_characters(connection: PgConnection, lease: Lease) -> None:
    content = {"recipient": "a@example.com", "subject": "x" * 2001}
    effects.begin(connection, lease, MAIL, KEYS["sent_emails"], content)
    assert stored(connection)["subject"] == "x" * 2000
