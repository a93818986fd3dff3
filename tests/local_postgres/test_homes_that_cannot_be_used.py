"""A home that cannot hold a server is refused with one sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.home import Home
from tests.local_postgres.conftest import Open


def test_a_home_that_cannot_be_made_is_refused(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for home in (tmp_path / "file", tmp_path / "file" / "home", Path("/proc/home-of-rowcall")):
        with pytest.raises(LocalPostgresError, match="ROWCALL_HOME"):
            opened(home)


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_in_the_place_of_the_cluster_is_not_followed(opened: Open, empty: Path, target: str) -> None:
    empty.mkdir()
    elsewhere = empty.parent / "elsewhere"
    elsewhere.mkdir()
    before = elsewhere.stat()
    Home(empty).cluster.symlink_to(empty.parent / target)

    with pytest.raises(LocalPostgresError, match=r"postgres is a link or a file, not a folder.*ROWCALL_HOME"):
        opened(empty)

    assert elsewhere.stat() == before
    assert not list(elsewhere.iterdir())
    assert not (empty.parent / "nowhere").exists()


def test_a_file_in_the_place_of_the_cluster_is_left_alone(opened: Open, empty: Path) -> None:
    empty.mkdir()
    Home(empty).cluster.write_text("of somebody's")

    with pytest.raises(LocalPostgresError, match=r"postgres is a link or a file, not a folder.*ROWCALL_HOME"):
        opened(empty)

    assert Home(empty).cluster.read_text() == "of somebody's"


@pytest.mark.parametrize(("note", "told"), [(None, "PG_VERSION: No such file"), ("16\n", "password is missing")])
def test_beside_data_of_somebody_else_nothing_is_created(
    opened: Open, empty: Path, note: str | None, told: str
) -> None:
    Home(empty).data.mkdir(parents=True)
    if note is not None:
        (Home(empty).data / "PG_VERSION").write_text(note)

    with pytest.raises(LocalPostgresError, match=told):
        opened(empty)

    assert list(empty.iterdir()) == [Home(empty).cluster]


def test_an_option_that_postgresql_does_not_know_is_told_with_its_own_words(opened: Open, home: Path) -> None:
    with pytest.raises(LocalPostgresError, match=r"did not start.*no_such_setting"):
        opened(home, options={"no_such_setting": "1"})


def test_data_without_its_password_is_told_from_a_home_that_is_new(opened: Open, home: Path) -> None:
    Home(home).password.unlink()

    with pytest.raises(LocalPostgresError, match=r"password is missing.*local_postgres remove"):
        opened(home)
