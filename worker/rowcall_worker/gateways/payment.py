"""Charges at a provider with an API like Stripe's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from ssl import SSLContext
from typing import Any, NoReturn
from urllib.parse import urlencode

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Declined, KeyReused, OutcomeUnknown, Refused, Unavailable, Unusable, WrongCharge
from rowcall_worker.gateways.charge import Charge
from rowcall_worker.gateways.exchange import Answer, exchange
from rowcall_worker.gateways.sockets import Deadline, resolve, trusting_the_system
from rowcall_worker.gateways.words import describe, excerpt

# Long, because the provider waits for banks; the total time is a setting.
STEP_SECONDS = 60.0

ANSWER_BYTES = 1 << 20

# The statuses of a charge whose money is on its way.
PAID = frozenset({"succeeded", "processing"})


class StripeLikeProvider:
    """`POST /v1/payment_intents`, form-encoded, confirmed at once and without the customer present."""

    def __init__(self, url: HttpUrl, key: str, *, timeout: float) -> None:
        self._url = HttpUrl(url.secure, url.host, url.port, url.target.rstrip("/") + "/v1/payment_intents")
        self._key = key
        self._timeout = timeout

    @cached_property
    def _context(self) -> SSLContext:
        return trusting_the_system()

    def charge(self, *, amount: int, currency: str, customer: str, reference: str, idempotency_key: str) -> Charge:
        """Charge once for each key."""
        check_charge(amount, currency, customer, reference, idempotency_key)
        form = {
            "amount": str(amount),
            "currency": currency,
            "customer": customer,
            "description": reference,
            "metadata[reference]": reference,
            "confirm": "true",
            "off_session": "true",
            "error_on_requires_action": "true",
        }
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Idempotency-Key": idempotency_key,
            "User-Agent": "Rowcall",
        }
        deadline = Deadline(self._timeout, STEP_SECONDS)
        try:
            addresses = resolve(self._url.host, self._url.port, deadline)
        except OSError as error:
            raise Unavailable(
                f"the payment provider {self._url.host} cannot be resolved at the moment: {describe(error)}"
            ) from error
        with exchange(self._url, addresses, headers, urlencode(form).encode(), deadline, self._context) as answer:
            body = answer.read(ANSWER_BYTES)
            if not 200 <= answer.status < 300:
                _refuse(answer, body, idempotency_key)
        return _read(body, amount, currency)


def check_charge(amount: int, currency: str, customer: str, reference: str, idempotency_key: str) -> None:
    """Refuse a request that no provider could accept, before anything is sent."""
    if type(amount) is not int or amount <= 0:
        raise Unusable(f"the amount {amount!r} must be a whole number above zero, in the currency's smallest unit")
    if not re.fullmatch(r"[a-z]{3}", currency):
        raise Unusable(f"the currency {currency!r} must be three lower-case letters, such as eur")
    if not re.fullmatch(r"[!-~]{1,255}", idempotency_key):
        raise Unusable(f"the idempotency key {idempotency_key!r} must be 1 to 255 ASCII characters without spaces")
    for name, text in (("customer", customer), ("reference", reference)):
        if not text or len(text) > 500 or not text.isprintable():
            raise Unusable(f"the {name} {text[:100]!r} must be 1 to 500 printable characters")


def _read(body: bytes, amount: int, currency: str) -> Charge:
    """The charge in a successful answer, compared with the request."""
    try:
        charge = _charge(json.loads(body))
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise OutcomeUnknown(
            f"the payment provider accepted the charge, but its answer cannot be read: {excerpt(body)}"
        ) from error
    if charge.status not in PAID:
        raise Declined(f"the payment {charge.id} is {charge.status}: the customer has to act, and no money moved")
    if (charge.amount, charge.currency) != (amount, currency):
        raise WrongCharge(
            f"the payment provider charged {charge.amount} {charge.currency} ({charge.id}) instead of {amount}"
            f" {currency}: check the charge there, and refund the excess"
        )
    return charge


def _charge(told: Any) -> Charge:
    """The charge in an answer; raises one of various errors if there is none."""
    # The amount received is a separate field, and may be less than the amount to pay.
    received = told["status"] == "succeeded" and "amount_received" in told
    charge = Charge(
        told["id"], told["amount_received" if received else "amount"], told["currency"].lower(), told["status"]
    )
    if not (isinstance(charge.id, str) and isinstance(charge.amount, int) and isinstance(charge.status, str)):
        raise TypeError("a charge has an id, an amount and a status")
    return charge


def _refuse(answer: Answer, body: bytes, idempotency_key: str) -> NoReturn:
    """Raise the error that corresponds to an unsuccessful answer."""
    status = answer.status
    error = _error(body)
    told = f"the payment provider answered {status}: {error.get('message') or excerpt(body) or 'an empty body'}"
    if status == 402:
        reason = error.get("decline_code") or error.get("code") or "declined"
        raise Declined(f"{told} ({reason})")
    if status in {400, 422} and error.get("type") == "idempotency_error":
        raise KeyReused(f"{told}; the key {idempotency_key!r} was used before, for another charge")
    if status in {425, 429}:
        raise Unavailable(told, answer.retry_after)
    # 409: another request under this key is under way, and may be the one that charges.  424: a bank did not answer.
    if status in {408, 409, 424} or status >= 500 or status < 200:
        raise OutcomeUnknown(told, answer.retry_after)
    if status in {401, 403}:
        raise Refused(f"{told}; check ROWCALL_PAYMENT_KEY")
    raise Refused(told)


def _error(body: bytes) -> Mapping[str, str]:
    """The provider's description of an error, as short plain strings; empty if its form is unknown."""
    try:
        error: Any = json.loads(body)["error"]
        return {name: excerpt(str(value).encode(errors="replace")) for name, value in error.items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
