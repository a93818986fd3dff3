"""Homes for local servers: empty ones, and ones whose cluster is there already."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.programs import find_programs
from rowcall.local_postgres.server import Server, open_server
from tests.local_postgres.processes import eventually, processes_in

FAST: Mapping[str, str] = {"fsync": "off"}  # these tests kill processes, never the machine

Open = Callable[..., Server]


def _is_here(source: str) -> bool:
    try:
        find_programs(source)
    except LocalPostgresError:
        return False
    return True


SOURCES = [source for source in ("machine", "wheel") if _is_here(source)]


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    """Each place that PostgreSQL's programs come from."""
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """After the test, no process may remain that has anything open below its folder."""
    yield
    eventually(lambda: not processes_in(tmp_path))


@pytest.fixture
def opened(nothing_is_left: None) -> Iterator[Open]:
    """`open_server` with settings for tests; what it opened is closed after the test."""
    servers: list[Server] = []

    def open_fast(home: Path, source: str = "auto", port: int = 0, options: Mapping[str, str] = FAST) -> Server:
        servers.append(open_server(home, source, port, options))
        return servers[-1]

    yield open_fast
    for server in servers:
        server.close()


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A home that is not there yet."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose cluster is made and not running."""
    home = tmp_path_factory.mktemp("made") / "home"
    open_server(home, options=FAST).close()
    eventually(lambda: not processes_in(home))
    return home


@pytest.fixture
def home(made_once: Path, empty: Path) -> Path:
    """A home of the test's own that starts fast, because its cluster is a copy."""
    empty.mkdir()
    subprocess.run(["/bin/cp", "-a", Home(made_once).cluster, empty], check=True)
    return empty
