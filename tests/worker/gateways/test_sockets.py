"""Time limits: one for the whole operation, however many steps it has."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address

import pytest

from rowcall_worker.gateways.sockets import Deadline, connect, resolve


def test_a_step_may_take_its_time_but_never_more_than_is_left() -> None:
    assert Deadline(total=1000, step=10).left() == 10
    assert 0 < Deadline(total=5, step=10).left() <= 5
    with pytest.raises(TimeoutError, match="it took longer than 0 seconds"):
        Deadline(total=0, step=10).left()


def test_patience_gives_a_step_all_that_is_left() -> None:
    deadline = Deadline(total=1000, step=10)
    deadline.patiently()
    assert 10 < deadline.left() <= 1000


def test_a_deadline_can_come_closer_and_never_move_away() -> None:
    deadline = Deadline(total=1000, step=1000)
    deadline.shorten(5)
    assert deadline.left() <= 5
    deadline.shorten(500)
    assert deadline.left() <= 5


def test_a_name_has_all_its_addresses_once() -> None:
    addresses = resolve("localhost", 80, Deadline(60, 60))
    assert ip_address("127.0.0.1") in addresses
    assert len(addresses) == len(set(addresses))


def test_a_name_service_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # The system's resolver cannot be made to hang, so this replaces it.
    hanging = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: hanging.wait() and [])
    with pytest.raises(TimeoutError, match="the name hooks.example was not resolved in time"):
        resolve("hooks.example", 443, Deadline(60, 0.01))
    hanging.set()


def test_without_an_address_there_is_nothing_to_connect_to() -> None:
    with pytest.raises(OSError, match="there is no address to connect to"):
        connect([], 80, Deadline(60, 60))
