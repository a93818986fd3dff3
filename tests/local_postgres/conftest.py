"""Homes for local servers: new ones, and ones with an existing cluster."""

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
    """Return each source of PostgreSQL's programs."""
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """Wait until no process has anything open below the test's folder."""
    yield
    eventually(lambda: not processes_in(tmp_path))


@pytest.fixture
def opened(nothing_is_left: None) -> Iterator[Open]:
    """Yield `open_server` with settings for tests; close what it opened after the test."""
    servers: list[Server] = []

    def open_fast(home: Path, source: str = "auto", port: int = 0, options: Mapping[str, str] = FAST) -> Server:
        servers.append(open_server(home, source, port, options))
        return servers[-1]

    yield open_fast
    for server in servers:
        server.close()


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return a home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a cluster that is not running."""
    home = tmp_path_factory.mktemp("made") / "home"
    open_server(home, options=FAST).close()
    eventually(lambda: not processes_in(home))
    return home


@pytest.fixture
def home(made_once: Path, empty: Path) -> Path:
    """Return a home for the test that starts fast, because its cluster is a copy."""
    empty.mkdir()
    subprocess.run(["/bin/cp", "-a", Home(made_once).cluster, empty], check=True)
    return empty
