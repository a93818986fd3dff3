"""Errors of gateways: each says whether the other side may have acted."""

from __future__ import annotations

from typing import Literal

from rowcall.base.errors.attempts import Permanent, Retry
from rowcall.base.errors.process import RowcallError


class GatewayError(RowcallError):
    """A call to an external service failed, or its outcome is unknown.

    `acted` tells which, of this one request: after "no" it is certain that nothing happened, so that the request may
    simply be made again; after "maybe" it may have been carried out.  It cannot speak of earlier requests under the
    same key: what one "maybe" has left open, a later "no" does not close.  Every class below is also a Retry or a
    Permanent, so a handler lets them through as they are.
    """

    acted: Literal["no", "maybe"] = "no"
    after: float | None = None

    @property
    def permanent(self) -> bool:
        """Whether the error is permanent."""
        return isinstance(self, Permanent)


class Unavailable(GatewayError, Retry):
    """Not now: the other side was not reached, or said so itself.  Nothing happened."""


class OutcomeUnknown(GatewayError, Retry):
    """The request was sent and no answer tells what became of it.  It may have been carried out."""

    acted = "maybe"


class Refused(GatewayError, Permanent):
    """The other side will not do it, now or later.  Nothing happened."""


class Unusable(Refused):
    """A gateway refused its input; nothing was sent."""


class NotConfigured(Refused):
    """A gateway was used whose settings are not set."""


class Blocked(Refused):
    """A webhook's URL resolves to an address that webhooks must not reach."""


class Declined(Refused):
    """The payment was declined; no money moved."""


class WrongCharge(GatewayError, Permanent):
    """The provider charged another amount than requested; an operator must check it."""

    acted = "maybe"


class KeyReused(GatewayError, Permanent):
    """The provider knows the idempotency key from a request with other content, which may have been carried out."""

    acted = "maybe"
