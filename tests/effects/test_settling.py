"""How a failed attempt leaves its effect: refused, declined or unknown, and what the next attempt may do."""

from __future__ import annotations

import pytest

from rowcall import effects
from rowcall.base.database import PgConnection
from rowcall.base.errors import Declined, GatewayError, OutcomeUnknown, Refused, Unavailable
from rowcall.effects import KINDS, Decision
from rowcall.queue import Lease
from tests.effects.attempts import (
    HOUR,
    MAIL,
    PAYMENT,
    REFUND,
    SMS,
    WEBHOOK,
    begun,
    failed,
    next_attempt,
    stored,
)

NO, MAYBE = Unavailable("the server is busy"), OutcomeUnknown("no answer came")


@pytest.mark.parametrize(
    ("kind", "error", "unknown", "state"),
    [
        (MAIL, NO, False, "refused"),
        (MAIL, Refused("550 no such user"), False, "refused"),
        (MAIL, MAYBE, True, "unknown"),
        (SMS, MAYBE, True, "unknown"),
        (SMS, Refused("no such number"), False, "refused"),
        (REFUND, MAYBE, False, "intent"),
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
        (REFUND, Declined("already refunded"), False, "refused"),
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
