"""The demo's external services, called by the real gateways: they answer like a provider and a webhook receiver."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import Declined, KeyReused, OutcomeUnknown, Refused
from rowcall_example.demo.outside import DECLINED_INVOICE, FLAKY, HOST
from rowcall_worker.gateways import Charge
from rowcall_worker.gateways.payment import StripeLikeProvider
from rowcall_worker.gateways.webhook import Webhook
from tests.support.processes import running, wait_until

KEY = "sk_demo_1"
SECRET = b"0" * 24
WORD = "whsec_" + "MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"


def reachable(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def outside(folder: Path) -> Iterator[int]:
    """Start them as `rowcall up` does, and yield their port."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    environment = {**os.environ, "ROWCALL_PAYMENT_KEY": KEY, "ROWCALL_WEBHOOK_SECRET": WORD}
    with running(environment, "demo", "outside", "--port", str(port), "--folder", str(folder)):
        wait_until(lambda: reachable(port), "the demo's services answer")
        yield port


def charge(port: int, key: str, invoice: str = "INV-1", amount: int = 1999, secret: str = KEY) -> Charge:
    provider = StripeLikeProvider(HttpUrl.parse(f"http://{HOST}:{port}"), secret, timeout=30)
    return provider.charge(amount=amount, currency="eur", customer="user-1", reference=invoice, idempotency_key=key)


def deliver(port: int, event_id: str, secret: bytes = SECRET) -> str:
    webhook = Webhook([secret], allow_loopback=True, timeout=30)
    return webhook.deliver(url=f"http://{HOST}:{port}/hooks", event_id=event_id, payload={"told": "ü"})


def test_a_key_charges_once_also_after_a_restart(tmp_path: Path) -> None:
    with outside(tmp_path) as port:
        first = charge(port, "a")
        assert charge(port, "a") == first
        assert charge(port, "b").id != first.id
    with outside(tmp_path) as port:
        assert charge(port, "a") == first
        with pytest.raises(KeyReused):
            charge(port, "a", amount=2000)
    assert len((tmp_path / "charges.jsonl").read_text().splitlines()) == 2


def test_one_invoice_is_declined_under_its_first_key_and_charged_under_its_next(tmp_path: Path) -> None:
    with outside(tmp_path) as port:
        for _ in range(2):
            with pytest.raises(Declined):
                charge(port, "a", DECLINED_INVOICE)
        assert charge(port, "a:2", DECLINED_INVOICE).status == "succeeded"


def test_a_stranger_can_neither_charge_nor_tell_of_events(tmp_path: Path) -> None:
    with outside(tmp_path) as port:
        with pytest.raises(Refused, match="401"):
            charge(port, "a", secret="sk_other")  # noqa: S106  # nobody's
        with pytest.raises(Refused, match="401"):
            deliver(port, "event", b"1" * 24)
        with pytest.raises(Refused, match="401"):
            deliver(port, "a/path")
    assert not list((tmp_path / "webhooks").iterdir())


def test_a_flaky_event_is_taken_when_it_comes_again(tmp_path: Path) -> None:
    with outside(tmp_path) as port:
        with pytest.raises(OutcomeUnknown, match="503") as refused:
            deliver(port, f"event{FLAKY}")
        assert refused.value.after == 2
        assert deliver(port, f"event{FLAKY}") == "HTTP 200"
    assert json.loads((tmp_path / "webhooks" / f"event{FLAKY}.json").read_text()) == {"told": "ü"}
