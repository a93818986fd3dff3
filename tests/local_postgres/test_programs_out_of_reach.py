"""A wheel's programs that the server's OS user or initdb's shell cannot reach are copied to where they can."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.local_postgres.account import claim
from rowcall.local_postgres.copies import reachable, remove_copies
from rowcall.local_postgres.programs import Programs, find_programs, wheel_package
from rowcall.local_postgres.server import remove
from tests.local_postgres.conftest import Open
from tests.local_postgres.processes import ask, eventually, processes_in

NEEDS_COPY = "odd $name"  # for any user


@pytest.fixture(params=["closed", NEEDS_COPY])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the wheel's folder, below a folder that only its owner may enter."""
    yield from _installed(tmp_path / str(request.param), monkeypatch)


@pytest.fixture
def odd_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the wheel's folder, below a folder whose name a shell would misread."""
    yield from _installed(tmp_path / NEEDS_COPY, monkeypatch)


def _installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = wheel_package()
    assert package is not None, "the tests need the wheel: pip install 'rowcall[local]'"
    folder.mkdir(mode=0o700)
    for part in package.parent.glob(f"{package.name}*"):
        (folder / part.name).symlink_to(part)
    monkeypatch.syspath_prepend(folder)
    yield folder
    remove_copies()


def test_a_server_runs_from_a_copy_that_goes_with_the_data(opened: Open, site: Path, empty: Path) -> None:
    server = opened(empty, "wheel")

    assert ask(server.url, "SELECT count(*) > 0 FROM pg_timezone_names")
    assert ask(server.url, "SELECT to_tsvector('english', 'running')::text") == "'run':1"
    copied = site not in server.programs.parents
    assert copied == (os.geteuid() == 0 or site.name == NEEDS_COPY)

    server.close()
    eventually(lambda: not processes_in(empty))
    remove(empty)
    assert server.programs.exists() != copied


def test_a_copy_is_made_once_and_used_again(odd_site: Path, tmp_path: Path) -> None:
    first = _reach(tmp_path)
    made = (first.folder / "postgres").stat()

    second = _reach(tmp_path)

    assert second == first
    assert (second.folder / "postgres").stat().st_ino == made.st_ino


def test_a_copy_that_others_could_have_changed_is_not_used(odd_site: Path, tmp_path: Path) -> None:
    first = _reach(tmp_path)
    root = first.folder.parents[2]
    root.chmod(0o777)
    try:
        assert _reach(tmp_path).folder != first.folder
    finally:
        root.chmod(0o755)


def test_a_copy_in_use_is_not_removed(odd_site: Path, tmp_path: Path) -> None:
    programs, lock = reachable(find_programs("wheel"), claim(tmp_path / "postgres"))
    assert lock is not None
    with lock:
        remove_copies()
        assert programs.folder.exists()

    remove_copies()
    assert not programs.folder.exists()


def _reach(folder: Path) -> Programs:
    programs, lock = reachable(find_programs("wheel"), claim(folder / "postgres"))
    assert lock is not None
    lock.close()
    return programs
