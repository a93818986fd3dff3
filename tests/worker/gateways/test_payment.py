"""Payments: one charge per key, and an error for every doubt about it."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from rowcall.base.endpoints import provider_url
from rowcall.base.errors import Declined, KeyReused, OutcomeUnknown, Refused, Unavailable, Unusable, WrongCharge
from rowcall_worker.gateways import Charge
from rowcall_worker.gateways.payment import StripeLikeProvider
from tests.support.servers import web
from tests.support.servers.authority import Authority
from tests.support.servers.provider import HORIZON_SECONDS, KEY, Provider
from tests.support.servers.web import Behaviour, WebServer, answers, serving

# LONG is enough for any server that answers, even on a busy machine; SHORT is for servers that never answer.
LONG, SHORT = 60.0, 1.0


def gateway(server: WebServer, key: str = KEY, timeout: float = LONG) -> StripeLikeProvider:
    """Return a gateway to this provider."""
    return StripeLikeProvider(provider_url(server.url), key, timeout=timeout)


def charge(payment: StripeLikeProvider, idempotency_key: str = "invoice:42", **given: Any) -> Charge:
    """Charge 19.99 euros for an invoice, or with these values."""
    ordinary = {"amount": 1999, "currency": "eur", "customer": "cus_1", "reference": "invoice 42 for Zoë"}
    return payment.charge(**{**ordinary, **given}, idempotency_key=idempotency_key)


def test_a_charge_is_what_was_asked_and_the_provider_is_told_everything_it_needs(provider: Provider) -> None:
    assert charge(gateway(provider)) == Charge("pi_1", 1999, "eur", "succeeded")
    assert [kept["amount"] for kept in provider.charges] == [1999]
    (request,) = provider.requests
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Idempotency-Key"] == "invoice:42"
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert provider.keys["invoice:42"].form == {
        "amount": "1999",
        "currency": "eur",
        "customer": "cus_1",
        "description": "invoice 42 for Zoë",
        "metadata[reference]": "invoice 42 for Zoë",
        "confirm": "true",
        "off_session": "true",
        "error_on_requires_action": "true",
    }


def test_the_same_key_again_is_the_same_charge(provider: Provider) -> None:
    payment = gateway(provider)
    assert charge(payment) == charge(payment)
    assert len(provider.charges) == 1
    assert charge(payment, "invoice:43").id == "pi_2"


@pytest.mark.parametrize(
    "behaviour",
    [
        web.leaves_before_answering,
        web.says_half,
        web.says_half_of_the_body,
        web.says_nothing,
        web.drips_the_head,
        web.drips_the_body,
        answers(500),
        answers(502, b"<html>bad gateway</html>"),
        answers(503),
        answers(408),
        answers(409, b'{"error": {"type": "idempotency_error", "message": "in progress"}}'),
        answers(424),
        answers(200, b"so be it"),
        answers(200, b"[]"),
        answers(200, b'{"id": 1, "amount": 1999, "currency": "eur", "status": "succeeded"}'),
        answers(200, b'{"id": "pi_1", "amount": "1999", "currency": "eur", "status": "succeeded"}'),
        answers(200, b'{"id": "pi_1", "amount": 1999, "currency": null, "status": "succeeded"}'),
        answers(200, b"[" * 100_000),
    ],
)
def test_a_charge_without_a_clear_answer_is_found_again_under_its_key(provider: Provider, behaviour: Behaviour) -> None:
    provider.misbehave(behaviour)
    waits = behaviour in {web.says_nothing, web.drips_the_head, web.drips_the_body}
    with pytest.raises(OutcomeUnknown) as error:
        charge(gateway(provider, timeout=SHORT if waits else LONG))
    assert (error.value.acted, error.value.permanent) == ("maybe", False)
    # The charge was made; the same key finds it instead of charging again.
    assert [kept["id"] for kept in provider.charges] == ["pi_1"]
    assert charge(gateway(provider)).id == "pi_1"
    assert len(provider.charges) == 1


def test_after_the_providers_horizon_the_same_key_charges_again_which_is_why_there_is_a_setting(
    provider: Provider,
) -> None:
    charge(gateway(provider))
    provider.let_time_pass(HORIZON_SECONDS)
    charge(gateway(provider))
    assert len(provider.charges) == 2


def test_an_answer_that_comes_twice_is_one_charge(provider: Provider) -> None:
    provider.misbehave(web.says_it_twice)
    assert charge(gateway(provider)).id == "pi_1"
    assert len(provider.charges) == 1


def test_another_amount_than_was_asked_is_told_loudly_with_both(provider: Provider) -> None:
    provider.surcharge = 1
    with pytest.raises(WrongCharge, match=r"charged 2000 eur \(pi_1\) instead of 1999 eur") as error:
        charge(gateway(provider))
    assert (error.value.acted, error.value.permanent) == ("maybe", True)


@pytest.mark.parametrize(
    "told", [{"currency": "usd"}, {"amount_received": 0}, {"amount": 1999, "amount_received": 1998}, {"amount": True}]
)
def test_another_currency_or_another_amount_received_is_told_too(provider: Provider, told: dict[str, Any]) -> None:
    answer = {"id": "pi_1", "amount": 1999, "currency": "eur", "status": "succeeded", **told}
    provider.misbehave(answers(200, json.dumps(answer).encode()))
    with pytest.raises(WrongCharge, match="instead of 1999 eur"):
        charge(gateway(provider))


def test_a_currency_in_capitals_is_the_same_currency(provider: Provider) -> None:
    provider.misbehave(answers(200, b'{"id": "pi_1", "amount": 1999, "currency": "EUR", "status": "processing"}'))
    assert charge(gateway(provider)) == Charge("pi_1", 1999, "eur", "processing")


def test_a_declined_card_is_final_and_moves_no_money(provider: Provider) -> None:
    provider.declined_customers.add("cus_1")
    with pytest.raises(Declined, match=r"answered 402: Declined. \(insufficient_funds\)") as error:
        charge(gateway(provider))
    assert (error.value.acted, error.value.permanent, provider.charges) == ("no", True, [])


@pytest.mark.parametrize("status", ["requires_action", "requires_payment_method", "canceled"])
def test_a_payment_that_waits_for_the_customer_is_none(provider: Provider, status: str) -> None:
    provider.status = status
    with pytest.raises(Declined, match=f"the payment pi_1 is {status}"):
        charge(gateway(provider))
    assert provider.charges == []


def test_a_key_of_another_charge_is_told_and_charges_nothing(provider: Provider) -> None:
    charge(gateway(provider))
    with pytest.raises(KeyReused, match="the key 'invoice:42' was used before, for another charge") as error:
        charge(gateway(provider), amount=2999)
    assert (error.value.acted, error.value.permanent) == ("maybe", True)
    assert [kept["amount"] for kept in provider.charges] == [1999]


def test_a_key_that_another_request_is_using_may_be_the_one_that_charges(provider: Provider) -> None:
    provider.busy_keys.add("invoice:42")
    with pytest.raises(OutcomeUnknown, match="answered 409: Another request with this key is in progress"):
        charge(gateway(provider))


@pytest.mark.parametrize("status", [425, 429])
def test_too_many_requests_wait_as_long_as_they_are_told(provider: Provider, status: int) -> None:
    provider.misbehave(answers(status, Retry_After="7"))
    with pytest.raises(Unavailable, match=f"answered {status}: an empty body") as error:
        charge(gateway(provider))
    assert (error.value.after, error.value.acted) == (7, "no")


@pytest.mark.parametrize("status", [301, 307, 400, 404, 422])
def test_a_request_that_the_provider_does_not_understand_is_not_repeated(provider: Provider, status: int) -> None:
    provider.misbehave(answers(status, b'{"error": {"type": "invalid_request_error", "message": "No such customer"}}'))
    with pytest.raises(Refused, match=f"answered {status}: No such customer") as error:
        charge(gateway(provider))
    assert type(error.value) is Refused
    assert len(provider.requests) == 1


def test_a_wrong_secret_key_is_named_by_its_setting_and_not_shown(provider: Provider) -> None:
    with pytest.raises(Refused, match=r"answered 401: .*; check ROWCALL_PAYMENT_KEY") as error:
        charge(gateway(provider, key="sk_hush"))
    assert "hush" not in str(error.value)


def test_a_providers_words_are_a_strangers_words(provider: Provider) -> None:
    told = {"error": {"message": "\x00\x1b[31m" + "x" * 5000, "type": ["odd"]}}
    provider.misbehave(answers(400, json.dumps(told).encode()))
    with pytest.raises(Refused) as error:
        charge(gateway(provider))
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_over_https_only_the_providers_own_certificate_will_do(trusted: Authority) -> None:
    with serving(Provider(), trusted.server_context("127.0.0.1")) as provider:
        assert charge(gateway(provider)).id == "pi_1"
    with serving(Provider(), trusted.server_context("other.example")) as impostor:
        payment = gateway(impostor)
        with pytest.raises(Unavailable, match="certificate is not valid for '127.0.0.1'"):
            charge(payment)
    assert impostor.requests == []


def test_a_provider_that_is_not_there_gets_another_chance() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", "https://payments.invalid"):
        with pytest.raises(Unavailable) as error:
            charge(StripeLikeProvider(provider_url(url), KEY, timeout=LONG))
        assert (error.value.acted, error.value.permanent) == ("no", False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"amount": 0}, "the amount 0 must be a whole number above zero"),
        ({"amount": -1}, "the amount -1"),
        ({"amount": 19.99}, "the amount 19.99"),
        ({"amount": True}, "the amount True"),
        ({"amount": "1999"}, "the amount '1999'"),
        ({"currency": "EUR"}, "the currency 'EUR' must be three lower-case letters"),
        ({"currency": "euro"}, "the currency"),
        ({"currency": "€"}, "the currency"),
        ({"customer": ""}, "the customer '' must be 1 to 500 printable characters"),
        ({"customer": "cus\n1"}, "the customer"),
        ({"reference": "x" * 501}, "the reference"),
        ({"reference": "a\0"}, "the reference"),
        ({"reference": "\ud800"}, "the reference"),
        ({"idempotency_key": ""}, "the idempotency key '' must be 1 to 255 ASCII characters"),
        ({"idempotency_key": "a\r\nX: 1"}, "the idempotency key"),
        ({"idempotency_key": "ü"}, "the idempotency key"),
        ({"idempotency_key": "x" * 256}, "the idempotency key"),
    ],
)
def test_what_no_provider_could_understand_is_not_sent(provider: Provider, given: dict[str, Any], told: str) -> None:
    with pytest.raises(Unusable, match=told):
        charge(gateway(provider), **given)
    assert provider.requests == []


def test_a_base_url_with_a_path_keeps_it(provider: Provider) -> None:
    provider.url += "/proxy/"
    with pytest.raises(Refused, match="Unrecognized request URL ./proxy/v1/payment_intents"):
        charge(gateway(provider))
