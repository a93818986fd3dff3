"""Remove the local server with all its data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.server import remove
from tests.local_postgres.conftest import Open
from tests.local_postgres.processes import PROJECT, ask, user_of


def test_where_nothing_is_nothing_is_removed_and_nothing_made(empty: Path) -> None:
    remove(empty)
    assert not empty.exists()

    empty.mkdir()
    (empty / "of somebody's").touch()
    remove(empty)
    assert [path.name for path in empty.iterdir()] == ["of somebody's"]


def test_a_server_in_use_is_not_removed(opened: Open, home: Path) -> None:
    server = opened(home)

    with pytest.raises(LocalPostgresError, match="in use"):
        remove(home)

    assert ask(server.url, "SELECT 1") == 1


def test_a_server_whose_last_user_just_left_is_waited_for_and_removed(opened: Open, home: Path) -> None:
    opened(home).close()

    remove(home)

    assert not list(home.iterdir())
    assert ask(opened(home).url, "SELECT 1") == 1


def test_a_link_in_the_place_of_the_cluster_is_removed_alone(empty: Path) -> None:
    empty.mkdir()
    elsewhere = empty.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    Home(empty).cluster.symlink_to(elsewhere)

    remove(empty)

    assert not list(empty.iterdir())
    assert (elsewhere / "file").exists()


def test_the_command_removes_the_settings_home_without_a_word(home: Path) -> None:
    done = _command(home, "remove")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(home.iterdir())
    assert _command(home, "remove").returncode == 0


def test_the_command_says_in_one_line_why_it_removes_nothing(home: Path) -> None:
    with user_of(home) as user:
        user.report()
        done = _command(home, "remove")

    assert done.returncode == LocalPostgresError.exit_code
    assert "in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_knows_one_word(home: Path) -> None:
    assert _command(home).returncode == 2


def _command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rowcall.local_postgres", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "ROWCALL_HOME": str(home)},
    )
