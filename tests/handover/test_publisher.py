"""The publisher: it gives a silent broker up, whichever it is, and shows no password."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from kombu.exceptions import OperationalError

from rowcall.base.errors import SettingsError
from rowcall_worker.runtime.handover import publisher
from rowcall_worker.runtime.handover.publisher import Publisher


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yield a server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def connections_to(server: socket.socket) -> int:
    """Return how often somebody has connected."""
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


@pytest.mark.timeout(60)  # by itself, Amazon's client waits for minutes
@pytest.mark.parametrize("url", ["amqp://guest:guest@{}//", "redis://{}/0", "sqs://key:secret@{}"])
def test_a_silent_broker_is_given_up(silent: socket.socket, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "ANSWER_SECONDS", 0.3)
    host, port = silent.getsockname()
    with pytest.raises(OperationalError, match="timed out|[Tt]imeout"):
        Publisher(url.format(f"{host}:{port}"), {}, {}).consumers()
    assert connections_to(silent) == 1


def test_of_a_url_that_cannot_be_read_no_part_is_shown() -> None:
    with pytest.raises(SettingsError, match="write / as %2F") as refused:
        Publisher("sqs://key:wJal/rXUt@", {}, {})
    assert "wJal" not in str(refused.value)
