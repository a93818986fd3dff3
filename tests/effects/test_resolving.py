"""Operators see unsettled effects and resolve them, and each decision is kept."""

from __future__ import annotations

import pytest

from rowcall import effects
from rowcall.access.audit import Operator, record
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import EffectKindUnknown, EffectNotFound, EffectNotOpen
from rowcall.effects import KINDS, Decision, Effect
from rowcall.queue import Lease
from rowcall.status import Status
from tests.effects.attempts import REFUND, SMS
from tests.support.rows import WORKER, run_in

OPERATOR = Operator("a test")
MAIL = KINDS["sent_emails"]


KINDS_OF_BOTH = pytest.mark.parametrize("kind", [MAIL, SMS], ids=lambda kind: kind.name)


def begun(connection: PgConnection, key: str = "welcome:1", kind: effects.Kind = MAIL) -> tuple[Lease, Effect]:
    run = run_in(connection, Status.RUNNING)
    lease = Lease(WORKER, run["id"], run["lease_no"])
    return lease, effects.begin(connection, lease, kind, effects.key_of(kind, key), {})[1]


def again(connection: PgConnection, lease: Lease, kind: effects.Kind = MAIL) -> Decision:
    """Return what the run's next attempt gets."""
    fetch_all(connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(id)s", {"id": lease.run_id})
    later = Lease(lease.worker, lease.run_id, lease.lease_no + 1)
    return effects.begin(connection, later, kind, effects.key_of(kind, "welcome:1"), {})[0]


def unknown(connection: PgConnection, kind: effects.Kind = MAIL) -> tuple[Lease, Effect]:
    lease, effect = begun(connection, kind=kind)
    assert again(connection, lease, kind) is Decision.AMBIGUOUS
    return Lease(lease.worker, lease.run_id, lease.lease_no + 1), effect


def test_a_reference_that_an_operator_gives_is_made_storable(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    assert effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, "mail \udcff5")["reference"] == "mail ?5"


@KINDS_OF_BOTH
def test_what_happened_is_never_done_again(connection: PgConnection, kind: effects.Kind) -> None:
    lease, effect = unknown(connection, kind)
    row = effects.resolve(connection, kind.name, effect.id, True, OPERATOR, "found in the log of the mail server")
    assert (row["state"], row["reference"]) == ("applied", "found in the log of the mail server")
    assert again(connection, lease, kind) is Decision.DONE


@KINDS_OF_BOTH
def test_why_it_was_unknown_is_not_said_of_what_is_known_to_have_happened(
    connection: PgConnection, kind: effects.Kind
) -> None:
    _, effect = unknown(connection, kind)
    fetch_all(connection, f"UPDATE rowcall.{kind.table.name} SET refusal = 'the database was restored'")
    assert effects.resolve(connection, kind.name, effect.id, True, OPERATOR)["refusal"] is None
    [audited] = fetch_all(connection, "SELECT before FROM rowcall.audit_log WHERE action = 'resolve'")
    assert audited["before"]["refusal"] == "the database was restored"


@KINDS_OF_BOTH
def test_what_did_not_happen_is_done_by_the_runs_next_attempt(connection: PgConnection, kind: effects.Kind) -> None:
    lease, effect = unknown(connection, kind)
    assert effects.resolve(connection, kind.name, effect.id, False, OPERATOR)["state"] == "refused"
    assert again(connection, lease, kind) is Decision.PERFORM


def test_an_intent_whose_run_will_not_come_back_can_be_settled_too(connection: PgConnection) -> None:
    lease, effect = begun(connection)
    with pytest.raises(EffectNotOpen, match=f"run {lease.run_id} is performing effect {effect.id} of sent_emails now"):
        effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)
    fetch_all(
        connection,
        "UPDATE rowcall.job_runs SET status = 'cancelled', locked_by = NULL, locked_until = NULL, finished_at = now()",
    )
    assert effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)["state"] == "applied"


def test_an_intent_whose_lease_is_over_is_refused_with_what_is_true_and_what_to_do(connection: PgConnection) -> None:
    lease, effect = begun(connection)
    fetch_all(connection, "UPDATE rowcall.job_runs SET locked_until = now() - interval '5 minutes'")
    told = rf"its lease expired at 2\S+ \S+, but no worker .* `rowcall runs cancel {lease.run_id} --force`"
    with pytest.raises(EffectNotOpen, match=told):
        effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)


@KINDS_OF_BOTH
@pytest.mark.parametrize("happened", [True, False])
def test_an_operator_can_correct_a_resolution_and_is_audited_again(
    connection: PgConnection, kind: effects.Kind, happened: bool
) -> None:
    lease, effect = unknown(connection, kind)
    wrong = effects.resolve(connection, kind.name, effect.id, not happened, OPERATOR)
    right = effects.resolve(connection, kind.name, effect.id, happened, OPERATOR)
    assert right["state"] == ("applied" if happened else "refused")
    assert (right["applied_at"] is not None, right["refusal"] is None) == (happened, happened)
    rows = fetch_all(connection, "SELECT before, after FROM rowcall.audit_log WHERE subject = 'effect' ORDER BY id")
    assert [(row["before"]["state"], row["after"]["state"]) for row in rows] == [
        ("unknown", wrong["state"]),
        (wrong["state"], right["state"]),
    ]
    with pytest.raises(EffectNotOpen, match=f"is {right['state']}: there is nothing to resolve"):
        effects.resolve(connection, kind.name, effect.id, happened, OPERATOR)
    assert again(connection, lease, kind) is (Decision.DONE if happened else Decision.PERFORM)


def test_the_reference_of_what_did_not_happen_after_all_is_removed(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, "250 queued")
    corrected = effects.resolve(connection, MAIL.name, effect.id, False, OPERATOR)
    assert (corrected["reference"], corrected["generation"]) == (None, 2)


def test_a_wrong_reference_can_be_corrected(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    first = effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, "250 qeued")
    corrected = effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, "250 queued")
    assert (corrected["reference"], corrected["applied_at"]) == ("250 queued", first["applied_at"])
    for repeated in ("250 queued", None):
        with pytest.raises(EffectNotOpen, match="is applied: there is nothing to resolve"):
            effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, repeated)


def test_the_reference_that_an_attempt_has_recorded_cannot_be_changed(connection: PgConnection) -> None:
    lease, effect = begun(connection)
    effects.applied(connection, lease, effect, "250 queued", {})
    with pytest.raises(EffectNotOpen, match="is applied: there is nothing to resolve"):
        effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR, "250 lost")


@pytest.mark.parametrize("happened", [True, False])
def test_a_resolution_cannot_be_corrected_once_a_later_attempt_has_begun_the_effect(
    connection: PgConnection, happened: bool
) -> None:
    lease, effect = unknown(connection)
    effects.resolve(connection, MAIL.name, effect.id, False, OPERATOR)
    assert again(connection, lease) is Decision.PERFORM
    with pytest.raises(EffectNotOpen, match="is performing effect"):
        effects.resolve(connection, MAIL.name, effect.id, happened, OPERATOR)


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("resolved_before", [True, False])
def test_what_an_attempt_has_recorded_as_applied_cannot_be_settled_otherwise(
    connection: PgConnection, resolved_before: bool, happened: bool
) -> None:
    lease, effect = unknown(connection) if resolved_before else begun(connection)
    if resolved_before:
        effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)
        effects.resolve(connection, MAIL.name, effect.id, False, OPERATOR)
        assert again(connection, lease) is Decision.PERFORM
        lease = Lease(lease.worker, lease.run_id, lease.lease_no + 1)
    effects.applied(connection, lease, effect, None, {})
    with pytest.raises(EffectNotOpen, match="is applied: there is nothing to resolve"):
        effects.resolve(connection, MAIL.name, effect.id, happened, OPERATOR)


def test_a_resolution_of_another_kind_with_the_same_id_permits_no_correction(connection: PgConnection) -> None:
    lease, effect = begun(connection)
    effects.applied(connection, lease, effect, None, {})
    record(connection, "ada", "resolve", "effect", effect.id, {}, {"kind": "payments", "state": "applied"})
    with pytest.raises(EffectNotOpen, match="is applied: there is nothing to resolve"):
        effects.resolve(connection, MAIL.name, effect.id, False, OPERATOR)


@pytest.mark.parametrize("kind", ["sent_emails", "sms", "nonsense"])
@pytest.mark.parametrize("effect_id", [0, -1, 999_999, 2**63])
def test_an_effect_that_is_not_there_is_named(connection: PgConnection, kind: str, effect_id: int) -> None:
    with pytest.raises(EffectNotFound, match=f"there is no effect {effect_id} of {kind}"):
        effects.resolve(connection, kind, effect_id, True, OPERATOR)


def test_an_effect_of_another_kind_in_the_same_table_is_not_there(connection: PgConnection) -> None:
    _, effect = unknown(connection, SMS)
    for kind in ("refunds", "other_effects", "sent_emails"):
        with pytest.raises(EffectNotFound, match=f"there is no effect {effect.id} of {kind}"):
            effects.resolve(connection, kind, effect.id, True, OPERATOR)


def test_every_word_of_an_operator_is_audited_with_before_and_after(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)
    [row] = fetch_all(connection, "SELECT * FROM rowcall.audit_log WHERE subject = 'effect'")
    assert (row["who"], row["action"], row["subject_id"]) == ("a test", "resolve", effect.id)
    assert (row["before"]["kind"], row["before"]["state"], row["after"]["state"]) == (
        "sent_emails",
        "unknown",
        "applied",
    )


def test_what_waits_for_an_operator_is_listed_and_a_runs_effects_are_too(connection: PgConnection) -> None:
    lease, effect = unknown(connection)
    begun(connection, "welcome:2")
    assert [row["id"] for row in effects.list_effects(connection, states=["unknown"])] == [effect.id]
    assert [row["state"] for row in effects.list_effects(connection)] == ["intent", "unknown"]
    assert effects.list_effects(connection, kind="payments") == []
    [own] = effects.effects_of(connection, lease.run_id)
    assert (own["kind"], own["key"], own["state"]) == ("sent_emails", "welcome:1", "unknown")


def test_a_list_has_what_an_operator_looks_for_elsewhere(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    # One of an earlier generation.
    fetch_all(
        connection, "UPDATE rowcall.sent_emails SET message_id = '<7@example.com>', recipient = 'ada@example.com'"
    )
    [listed] = effects.list_effects(connection, states=["unknown"])
    assert listed["details"] == {
        "idempotency_key": "welcome:1",
        "message_id": effect.message_id,
        "recipient": "ada@example.com",
    }
    assert "details" not in effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)


def test_the_message_id_of_an_email_that_may_have_been_sent_is_listed_though_its_handler_recorded_nothing(
    connection: PgConnection,
) -> None:
    _, effect = unknown(connection)
    fetch_all(connection, "SET LOCAL TIME ZONE 'Asia/Tokyo'")
    [listed] = effects.list_effects(connection, states=["unknown"])
    assert listed["details"]["message_id"] == effect.message_id


def test_what_waits_for_an_operator_is_counted_by_kind(connection: PgConnection) -> None:
    unknown(connection)
    begun(connection, "welcome:2")
    assert effects.count_unknown(connection) == {kind: int(kind == MAIL.name) for kind in KINDS}


def test_kinds_of_an_app_are_listed_and_counted_where_no_code_declares_them(connection: PgConnection) -> None:
    unknown(connection, SMS)
    begun(connection, kind=REFUND)
    fetch_all(connection, "UPDATE rowcall.other_effects SET kind = 'pigeons' WHERE kind = 'sms'")
    assert [row["kind"] for row in effects.list_effects(connection)] == ["refunds", "pigeons"]
    assert [row["kind"] for row in effects.list_effects(connection, "pigeons")] == ["pigeons"]
    assert effects.count_unknown(connection) == {**dict.fromkeys(KINDS, 0), "pigeons": 1}
    assert effects.list_effects(connection, "pigeons", ["applied"]) == []
    with pytest.raises(EffectKindUnknown, match="kind 'sms'; known kinds: .*, pigeons, refund"):
        effects.list_effects(connection, "sms")


def test_the_operators_reason_is_kept_in_the_audit_log(connection: PgConnection) -> None:
    _, effect = unknown(connection)
    effects.resolve(connection, MAIL.name, effect.id, True, Operator("a test", reason="it is in the mail log"))
    sql = "SELECT after ->> 'reason' AS reason FROM rowcall.audit_log WHERE subject = 'effect' AND subject_id = %(id)s"
    assert fetch_all(connection, sql, {"id": effect.id}) == [{"reason": "it is in the mail log"}]


def test_what_can_be_resolved_is_known_before(connection: PgConnection) -> None:
    """It is the same question that `resolve` asks."""
    lease, effect = begun(connection)
    row = effects.show_effect(connection, MAIL.name, effect.id)
    assert not effects.resolvable(connection, row)  # its attempt performs it now
    assert again(connection, lease) is Decision.AMBIGUOUS
    row = effects.show_effect(connection, MAIL.name, effect.id)
    assert effects.resolvable(connection, row)
    assert effects.resolvable(connection, effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR))
    assert effects.resolvable(connection, effects.resolve(connection, MAIL.name, effect.id, False, OPERATOR))


def test_what_an_attempt_recorded_as_applied_cannot_be_resolved(connection: PgConnection) -> None:
    lease, effect = begun(connection)
    effects.applied(connection, lease, effect, "ref-1", {})
    assert not effects.resolvable(connection, effects.show_effect(connection, MAIL.name, effect.id))
