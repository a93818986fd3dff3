"""Payments: what a provider does, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Charge:
    """Money that was charged: the provider's id of it, and the amount in the currency's smallest unit."""

    id: str
    amount: int
    currency: str
    status: str


class PaymentProvider(Protocol):
    """A provider that charges; anything with this method can replace the one that comes with Rowcall."""

    def charge(self, *, amount: int, currency: str, customer: str, reference: str, idempotency_key: str) -> Charge:
        """Charge a customer of the provider once for each key, however often it is asked.

        The amount is in the currency's smallest unit; `reference` is what people on both sides find the charge by.
        Raises Declined, WrongCharge and KeyReused, which somebody must look at, Refused and Unusable for a request
        that is wrong in itself, and Unavailable or OutcomeUnknown when it may be repeated with the same key.
        """
        ...
