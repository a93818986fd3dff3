"""Deliver webhooks in tests: to this machine, under host names of the test."""

from __future__ import annotations

from ipaddress import ip_address

from rowcall_worker.gateways.sockets import Address, Deadline
from rowcall_worker.gateways.webhook import Webhook

SECRET, OLD_SECRET = bytes(range(24)), bytes(range(32))

# LONG is enough for any server that answers, even on a busy machine; SHORT is for servers that never answer.
LONG, SHORT = 60.0, 1.0


class Names:
    """A resolver for a test, which counts its calls."""

    def __init__(self, **addresses: list[str]) -> None:
        self._addresses = addresses
        self.asked = 0

    def __call__(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        self.asked += 1
        return [ip_address(address) for address in self._addresses[host.partition(".")[0]]]


def gateway(timeout: float = LONG, names: Names | None = None, allow_loopback: bool = True) -> Webhook:
    """Return a gateway that may deliver to this machine."""
    if names is None:
        return Webhook([SECRET], allow_loopback=allow_loopback, timeout=timeout)
    return Webhook([SECRET], allow_loopback=allow_loopback, timeout=timeout, resolve=names)


def deliver(url: str, webhook: Webhook | None = None, event_id: str = "evt_1", payload: object = None) -> str:
    """Deliver a small event."""
    return (webhook or gateway()).deliver(url=url, event_id=event_id, payload=payload or {"type": "order.paid"})
