"""Kinds of effect that an app declares, the keys of all kinds, and what a handler may pass."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import date, datetime
from typing import Any

import pytest

from rowcall import EffectKind, effects
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import AmbiguousEffect, DeclarationError, EffectInvalid, Permanent, Retry
from rowcall.effects import KINDS, Decision, Effect
from rowcall.queue import Lease
from rowcall_worker.attempt.effects import Perform, Transaction, perform_once
from tests.effects.attempts import CONTENT, KEYS, MAIL, REFUND, SMS, WEBHOOK, begun, next_attempt, stored

REPORT, FILE = KINDS["sent_reports"], KINDS["generated_files"]


def within(connection: PgConnection) -> Transaction:
    return lambda: nullcontext(connection)


def performed(connection: PgConnection, lease: Lease, kind: effects.Kind, perform: Any) -> Effect:
    asked: Perform = perform
    return perform_once(
        lease, within(connection), within(connection), lambda: None, kind, KEYS[kind.name], CONTENT, asked, horizon=60
    )


@pytest.mark.parametrize(
    ("name", "declared", "complaint"),
    [
        ("SMS", {"policy": "at_most_once"}, "'SMS': name must be lower-case words such as sms"),
        ("", {"policy": "at_most_once"}, "name must be lower-case words"),
        ("s" * 64, {"policy": "at_most_once"}, "name must be lower-case words"),
        (7, {"policy": "at_most_once"}, "effect kind 7: name must be"),
        ("sent_emails", {"policy": "at_most_once"}, "'sent_emails': Rowcall uses this name itself"),
        ("other_effects", {"policy": "at_most_once"}, "Rowcall uses this name itself"),
        ("fax", {"policy": "maybe"}, "'fax': policy is 'maybe' and must be one of at_most_once, at_least_once, "),
        ("fax", {"policy": "provider_key"}, "'fax': horizon, .* must be set for the policy provider_key"),
        (
            "fax",
            {"policy": "at_most_once", "horizon": 60},
            "'fax': horizon, .* must be set for the policy provider_key",
        ),
        ("fax", {"policy": "provider_key", "horizon": 0}, "horizon is 0 and must be seconds above 0"),
        ("fax", {"policy": "provider_key", "horizon": float("nan")}, "horizon is nan and must be seconds above 0"),
        ("sms", {"policy": "at_least_once"}, "'sms' is declared twice, as at_most_once and as at_least_once;"),
    ],
)
def test_a_wrong_declaration_fails_where_it_stands(name: Any, declared: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeclarationError, match=complaint):
        EffectKind(name, **declared)


def test_a_module_that_is_loaded_again_declares_the_same() -> None:
    assert EffectKind("sms", policy="at_most_once") == effects.kind_of("sms") == SMS


def test_kinds_that_an_app_declares_share_a_table_and_no_keys(connection: PgConnection, lease: Lease) -> None:
    assert [begun(connection, lease, kind)[0] for kind in (SMS, REFUND)] == [Decision.PERFORM] * 2
    rows = fetch_all(connection, "SELECT kind, key, state FROM rowcall.other_effects ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [("sms", "7", "intent"), ("refunds", "7", "intent")]


def test_what_is_sent_along_is_the_key_alone_and_new_with_each_generation(
    connection: PgConnection, lease: Lease
) -> None:
    _, effect = begun(connection, lease, REFUND)
    assert (effect.idempotency_key, effect.event_id) == ("7", "7")
    fetch_all(connection, "UPDATE rowcall.other_effects SET state = 'refused', generation = 2")
    _, effect = begun(connection, next_attempt(connection, lease), REFUND)
    assert (effect.idempotency_key, effect.event_id) == ("7:2", "7")
    assert effect.message_id.startswith(f"<refunds.{effect.id}.")


@pytest.mark.parametrize(
    ("kind", "key", "complaint"),
    [
        (MAIL, {"event_id": "1"}, "the key of sent_emails consists of idempotency_key, not of event_id"),
        (MAIL, {1: "1"}, "consists of idempotency_key, not of 1"),
        (MAIL, {"idempotency_key": "é" * 1001}, "is 'é+...?, 2002 bytes; the limit is 2000: use an id, or a hash"),
        (SMS, 7, "the key of sms is 7: it must be a string"),
        (SMS, None, "the key of sms is None: it must be a string"),
        (SMS, "", "key of sms is '': it must be a non-empty string"),
        (SMS, "a\0b", "key of sms is .*: PostgreSQL cannot store NUL or half a surrogate pair"),
        (SMS, "a\ud800b", "PostgreSQL cannot store NUL or half a surrogate pair"),
        (SMS, {"key": 7}, "key of sms is 7: it must be a non-empty string"),
        (REPORT, "7", "the key of sent_reports is '7': it must be a mapping of user_id, week_start_date"),
        (REPORT, {"user_id": "7", "week_start_date": "2026-03-23"}, "user_id of sent_reports is '7': .* an integer"),
        (REPORT, {"user_id": True, "week_start_date": "2026-03-23"}, "it must be an integer"),
        (REPORT, {"user_id": 2**63, "week_start_date": "2026-03-23"}, "it must be an integer of at most 8 bytes"),
        (REPORT, {"user_id": 7, "week_start_date": "monday"}, "is 'monday': it must be a date, such as date.2026"),
        (REPORT, {"user_id": 7, "week_start_date": datetime(2026, 3, 23)}, "it must be a date"),
    ],
)
def test_a_wrong_key_is_refused_for_good(kind: effects.Kind, key: Any, complaint: str) -> None:
    with pytest.raises(EffectInvalid, match=complaint) as error:
        effects.key_of(kind, key)
    assert isinstance(error.value, Permanent)


@pytest.mark.parametrize("day", ["2026-03-23", date(2026, 3, 23)])
def test_a_date_is_given_as_one_or_as_text(connection: PgConnection, lease: Lease, day: object) -> None:
    key = effects.key_of(REPORT, {"user_id": 7, "week_start_date": day})
    assert effects.record(connection, lease, REPORT, key, {})
    assert fetch_value(connection, "SELECT week_start_date::text FROM rowcall.sent_reports") == "2026-03-23"


def test_an_unknown_kind_is_an_error_that_lists_those_there_are_and_how_to_declare_one() -> None:
    with pytest.raises(EffectInvalid, match=r"no effect kind 'sent_pigeons'; .* sent_emails, .*sms.* EffectKind\("):
        effects.kind_of("sent_pigeons")


@pytest.mark.parametrize(
    ("kind", "answer", "complaint"),
    [
        (SMS, 7, "must return the provider's reference as a string, or None; it returned a reference of the type int"),
        (SMS, {"reference": ["a"]}, "a reference of the type list"),
        (SMS, {"sha256": "00"}, "sms has no column 'sha256' for what perform returned"),
        (WEBHOOK, {"sha256": "00", "response_status": 200}, "delivered_webhooks has no column 'sha256'"),
    ],
)
def test_what_happened_is_recorded_though_its_answer_is_wrong(
    connection: PgConnection, lease: Lease, kind: effects.Kind, answer: object, complaint: str
) -> None:
    with pytest.raises(EffectInvalid, match=f"{complaint}.*; the effect has happened and is recorded"):
        performed(connection, lease, kind, lambda effect: answer)
    assert (stored(connection, kind)["state"], stored(connection, kind)["provider_reference"]) == ("applied", None)


def test_what_cannot_be_called_is_told_before_anything_is_begun(connection: PgConnection, lease: Lease) -> None:
    with pytest.raises(EffectInvalid, match="perform of sms is 'send' and must be a function that takes the effect"):
        performed(connection, lease, SMS, "send")
    assert fetch_all(connection, "SELECT id FROM rowcall.other_effects") == []


@pytest.mark.parametrize("error", [ValueError("broken"), Retry(after=1.0), Permanent("never")])
@pytest.mark.parametrize("kind", [SMS, REFUND, WEBHOOK])
def test_an_error_that_no_gateway_raised_leaves_the_outcome_unknown_wherever_no_attempt_will_settle_it(
    connection: PgConnection, lease: Lease, kind: effects.Kind, error: Exception
) -> None:
    def perform(effect: Effect) -> str:
        raise error

    once = kind is SMS and not isinstance(error, Permanent)
    with pytest.raises(AmbiguousEffect if once else type(error)) as raised:
        performed(connection, lease, kind, perform)
    waits = isinstance(error, Permanent) or kind is SMS
    assert stored(connection, kind)["state"] == ("unknown" if waits else "intent")
    assert not once or f"perform raised {type(error).__name__}" in str(raised.value)


def test_an_effect_of_the_runs_own_transaction_is_not_performed(connection: PgConnection, lease: Lease) -> None:
    audit = EffectKind("audits", policy="with_the_run")
    with pytest.raises(EffectInvalid, match=r"audits has the policy with_the_run: write it with run.record\(\)"):
        perform_once(
            lease,
            within(connection),
            within(connection),
            lambda: None,
            audit,
            {"key": "1"},
            {},
            lambda _: None,
            horizon=60,
        )
    assert effects.record(connection, lease, audit, {"key": "1"}, {})
