"""The ledger: begun under the lease, settled under the lease, and never twice."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any

import pytest
from psycopg2.errors import LockNotAvailable

from rowcall import effects
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.base.errors import Declined, EffectInvalid, GatewayError, LeaseLost, OutcomeUnknown, Refused, Unavailable
from rowcall.effects import KINDS, Decision, Effect, Policy
from rowcall.queue import Lease
from rowcall.status import Status
from rowcall_worker.attempt.effects import perform_once
from tests.support.rows import WORKER, run_in

MAIL, PAYMENT, WEBHOOK = KINDS["sent_emails"], KINDS["payments"], KINDS["delivered_webhooks"]
KEYS = {
    "sent_emails": {"idempotency_key": "welcome:1"},
    "payments": {"idempotency_key": "invoice_charge:1"},
    "delivered_webhooks": {"event_id": "evt-1"},
    "generated_files": {"type": "sales_report", "date": "2026-03-29", "key": "csv"},
}
PERFORMED = [KINDS[name] for name in KEYS]
CONTENT = {"recipient": "a@example.com", "subject": "Hello"}
HOUR = 3600.0


@pytest.fixture
def lease(connection: PgConnection) -> Lease:
    return lease_of(connection)


def lease_of(connection: PgConnection) -> Lease:
    run = run_in(connection, Status.RUNNING)
    return Lease(WORKER, run["id"], run["lease_no"])


def next_attempt(connection: PgConnection, lease: Lease) -> Lease:
    """The same run under its next lease."""
    fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(id)s", {"id": lease.run_id})
    return Lease(lease.worker, lease.run_id, lease.lease_no + 1)


def begun(connection: PgConnection, lease: Lease, kind: effects.Kind = MAIL, **more: Any) -> tuple[Decision, Effect]:
    return effects.begin(connection, lease, kind, KEYS[kind.name], CONTENT, **more)


def stored(connection: PgConnection, kind: effects.Kind = MAIL) -> dict[str, Any]:
    row = fetch_one(connection, f"SELECT * FROM rowcall.{kind.name}")
    assert row is not None
    return row


def failed(connection: PgConnection, lease: Lease, effect: Effect, error: GatewayError) -> bool:
    return effects.failed(connection, lease, effect, error, effect.kind.policy)


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


STALE = ["another lease", "another worker", "not running"]


def stale(connection: PgConnection, lease: Lease, how: str) -> Lease:
    """A lease that was lost in this way."""
    if how == "another lease":
        next_attempt(connection, lease)
        return lease
    if how == "another worker":
        return Lease("worker-2", lease.run_id, lease.lease_no)
    fetch_all(
        connection,
        "UPDATE rowcall.job_runs SET status = 'failed', locked_by = NULL, locked_until = NULL WHERE id = %(id)s",
        {"id": lease.run_id},
    )
    return lease


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
    (MAIL, None, Decision.AMBIGUOUS, "unknown"),
    (MAIL, Policy.AT_LEAST_ONCE, Decision.PERFORM, "intent"),
    (WEBHOOK, None, Decision.PERFORM, "intent"),
    (KINDS["generated_files"], None, Decision.PERFORM, "intent"),
    (PAYMENT, None, Decision.PERFORM, "intent"),
]


@pytest.mark.parametrize(("kind", "policy", "decision", "state"), GAPS)
def test_an_intent_that_an_earlier_attempt_left_goes_by_the_policy(
    connection: PgConnection,
    lease: Lease,
    kind: effects.Kind,
    policy: Policy | None,
    decision: Decision,
    state: str,
) -> None:
    _, first = begun(connection, lease, kind)
    found = begun(connection, next_attempt(connection, lease), kind, policy=policy, horizon=HOUR)
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


NO, MAYBE = Unavailable("the server is busy"), OutcomeUnknown("no answer came")


@pytest.mark.parametrize(
    ("kind", "error", "unknown", "state"),
    [
        (MAIL, NO, False, "refused"),
        (MAIL, Refused("550 no such user"), False, "refused"),
        (MAIL, MAYBE, True, "unknown"),
        (PAYMENT, MAYBE, False, "intent"),
        (PAYMENT, Declined("card declined"), False, "refused"),
        (WEBHOOK, MAYBE, False, "intent"),
        (WEBHOOK, Refused("410"), False, "refused"),
    ],
)
def test_what_a_first_try_that_failed_leaves_behind(
    connection: PgConnection, lease: Lease, kind: effects.Kind, error: GatewayError, unknown: bool, state: str
) -> None:
    _, effect = begun(connection, lease, kind)
    assert failed(connection, lease, effect, error) is unknown
    assert stored(connection, kind)["state"] == state


@pytest.mark.parametrize(
    ("kind", "error", "unknown", "state"),
    [
        (WEBHOOK, NO, False, "intent"),
        (WEBHOOK, Refused("410"), True, "unknown"),
        (PAYMENT, NO, False, "intent"),
        (PAYMENT, Declined("card declined"), False, "refused"),
    ],
)
def test_a_no_says_nothing_of_an_earlier_try_unless_the_provider_goes_by_the_key(
    connection: PgConnection, lease: Lease, kind: effects.Kind, error: GatewayError, unknown: bool, state: str
) -> None:
    begun(connection, lease, kind)
    lease = next_attempt(connection, lease)
    _, again = begun(connection, lease, kind, horizon=HOUR)
    assert failed(connection, lease, again, error) is unknown
    assert stored(connection, kind)["state"] == state


def test_what_was_refused_for_now_is_begun_again_under_the_same_key(connection: PgConnection, lease: Lease) -> None:
    _, effect = begun(connection, lease, PAYMENT)
    failed(connection, lease, effect, NO)
    assert stored(connection, PAYMENT)["refusal"] == "the server is busy"
    decision, again = begun(connection, next_attempt(connection, lease), PAYMENT)
    assert (decision, again.again, again.idempotency_key) == (Decision.PERFORM, False, "invoice_charge:1")
    assert stored(connection, PAYMENT)["refusal"] is None


@pytest.mark.parametrize(("error", "state"), [(Unavailable, "refused"), (OutcomeUnknown, "unknown")])
def test_what_a_gateway_said_is_kept_short_storable_and_without_secrets(
    connection: PgConnection, lease: Lease, error: type[GatewayError], state: str
) -> None:
    _, effect = begun(connection, lease)
    failed(connection, lease, effect, error(f"no \0\ud800 for Bearer hush-hush-hush-0123456789 {'x' * 5000}"))
    row = stored(connection)
    assert (row["state"], row["refusal"][:30], len(row["refusal"])) == (state, "no ? for Bearer *** xxxxxxxxxx", 1000)


def test_a_providers_reference_is_kept_storable_and_no_longer_than_any_real_one(
    connection: PgConnection, lease: Lease
) -> None:
    _, effect = begun(connection, lease)
    kept = effects.applied(connection, lease, effect, f"sk_test_0123456789\0\ud800{'x' * 5000}", {})
    assert kept.reference == f"sk_test_0123456789?{'x' * 236}"
    report, key = KINDS["sent_reports"], {"user_id": 7, "week_start_date": "2026-03-23"}
    assert effects.record(connection, lease, report, key, {}, reference="mail\0 5")
    assert stored(connection, report)["provider_reference"] == "mail 5"


def test_what_was_refused_for_good_is_begun_anew_under_another_key_of_the_providers(
    connection: PgConnection, lease: Lease
) -> None:
    _, effect = begun(connection, lease, PAYMENT)
    failed(connection, lease, effect, Declined("card declined"))
    decision, anew = begun(connection, next_attempt(connection, lease), PAYMENT)
    assert (decision, anew.again, anew.idempotency_key) == (Decision.PERFORM, False, "invoice_charge:1:2")


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
    ("key", "content", "complaint"),
    [
        ({"event_id": "1"}, {}, "the key of sent_emails is made of idempotency_key, not of event_id"),
        (KEYS["sent_emails"], {"a": object()}, "cannot be told apart from other content: object is no JSON"),
        (KEYS["sent_emails"], {"a": float("nan")}, "cannot be told apart"),
    ],
)
def test_what_is_no_effect_is_refused_with_a_reason(
    connection: PgConnection, lease: Lease, key: dict[str, Any], content: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(EffectInvalid, match=complaint):
        effects.begin(connection, lease, MAIL, key, content)


def test_a_column_that_the_kind_has_not_is_named(connection: PgConnection, lease: Lease) -> None:
    _, effect = begun(connection, lease)
    with pytest.raises(EffectInvalid, match="sent_emails has no column 'sha256'"):
        effects.applied(connection, lease, effect, None, {"sha256": "00"})


def test_a_policy_is_given_by_its_name_and_one_that_there_is_not_is_refused(
    connection: PgConnection, lease: Lease
) -> None:
    begun(connection, lease)
    again = next_attempt(connection, lease)

    def perform(policy: str) -> Effect:
        return perform_once(
            again,
            lambda: nullcontext(connection),
            lambda: None,
            MAIL,
            KEYS[MAIL.name],
            CONTENT,
            lambda effect: "sent again",
            policy=policy,
            horizon=HOUR,
        )

    with pytest.raises(EffectInvalid, match="no policy 'at_last'; there are: at_most_once, at_least_once, provider_"):
        perform("at_last")
    effect = perform("at_least_once")
    assert (effect.state, effect.reference) == ("applied", "sent again")


def test_an_unknown_kind_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(EffectInvalid, match="no kind of effect 'sent_pigeons'; there are: sent_emails, "):
        effects.kind_of("sent_pigeons")
