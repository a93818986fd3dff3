"""Errors of gateways: each says whether the other side may have acted."""

from __future__ import annotations

from typing import Literal

from rowcall.base.errors.attempts import Permanent, Retry
from rowcall.base.errors.process import RowcallError


class GatewayError(RowcallError):
    """A call to an external service failed, or its outcome is unknown.

    `acted` says whether the other side may have acted on this request: "no" means that nothing happened and the request
    can be repeated; "maybe" means that it may have been carried out.  It says nothing about earlier requests with the
    same key: a "no" after a "maybe" leaves the outcome unknown.  Every class below is also a Retry or a Permanent, so a
    handler need not catch them.
    """

    acted: Literal["no", "maybe"] = "no"
    after: float | None = None

    @property
    def permanent(self) -> bool:
        """Whether the error is permanent."""
        return isinstance(self, Permanent)


class Unavailable(GatewayError, Retry):
    """The other side could not be reached, or said that it is unavailable.  Nothing happened."""


class OutcomeUnknown(GatewayError, Retry):
    """The request was sent, but no answer shows its outcome.  It may have been carried out."""

    acted = "maybe"


class Refused(GatewayError, Permanent):
    """The other side refused permanently.  Nothing happened."""


class Unusable(Refused):
    """A gateway refused its input; nothing was sent."""


class NotConfigured(Refused):
    """A gateway was used, but its settings are not set."""


class Blocked(Refused):
    """A webhook's URL resolves to an address that webhooks must not reach."""


class Declined(Refused):
    """The payment was declined; no money moved."""


class WrongCharge(GatewayError, Permanent):
    """The provider charged a different amount than requested; an operator must check it."""

    acted = "maybe"


class KeyReused(GatewayError, Permanent):
    """The provider has seen the idempotency key in a request with different content, which it may have carried out."""

    acted = "maybe"
