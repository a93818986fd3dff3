"""Payments: the interface of a provider, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Charge:
    """A charge that was made: the provider's id, and the amount in the smallest unit of the currency."""

    id: str
    amount: int
    currency: str
    status: str


class PaymentProvider(Protocol):
    """A provider that charges; anything with this method can replace the one that comes with Rowcall."""

    def charge(self, *, amount: int, currency: str, customer: str, reference: str, idempotency_key: str) -> Charge:
        """Charge a customer once per key, however often this is called.

        The amount is in the smallest unit of the currency; people on both sides find the charge by `reference`. Raises
        Declined, WrongCharge and KeyReused, which need an operator; Refused and Unusable for an invalid request;
        Unavailable or OutcomeUnknown if it may be repeated with the same key.
        """
        ...
