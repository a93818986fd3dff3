"""The port: the requested one, the last one, or a free one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError, PortInUse
from rowcall.local_postgres.home import Home
from tests.local_postgres.conftest import Open
from tests.local_postgres.processes import ask, eventually, processes_in


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """Yield a socket of another program."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield other


def _listen(taken: socket.socket, port: int = 0) -> int:
    taken.bind(("127.0.0.1", port))
    taken.listen()
    chosen: int = taken.getsockname()[1]
    return chosen


def test_a_port_asked_for_is_used(opened: Open, home: Path, taken: socket.socket) -> None:
    port = _listen(taken)
    taken.close()

    server = opened(home, port=port)

    assert server.port == port
    assert ask(server.url, "SELECT inet_server_port()") == port


def test_a_port_asked_for_and_taken_is_an_error_that_names_the_setting(
    opened: Open, home: Path, taken: socket.socket
) -> None:
    port = _listen(taken)

    with pytest.raises(PortInUse, match=f"port {port} .*ROWCALL_POSTGRES_PORT"):
        opened(home, port=port)

    eventually(lambda: not processes_in(home))
    assert ask(opened(home).url, "SELECT 1") == 1


def test_the_port_of_last_time_is_given_up_when_it_is_taken(opened: Open, home: Path, taken: socket.socket) -> None:
    first = opened(home)
    first.close()
    eventually(lambda: not processes_in(home))
    _listen(taken, first.port)

    second = opened(home)

    assert second.port != first.port
    assert ask(second.url, "SELECT 1") == 1


def test_another_port_than_the_running_servers_is_refused(opened: Open, home: Path) -> None:
    server = opened(home)

    with pytest.raises(LocalPostgresError, match=f"is already running on port {server.port}, .*ROWCALL_POSTGRES_PORT"):
        opened(home, port=server.port + 1)

    assert opened(home, port=server.port).url == server.url


def test_an_unreadable_note_of_the_last_port_is_passed_over(opened: Open, home: Path) -> None:
    Home(home).state.write_text('{"running": tr')

    assert ask(opened(home).url, "SELECT 1") == 1
