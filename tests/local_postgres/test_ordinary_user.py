"""Rowcall run by an ordinary OS user; if root runs these tests, it lends what they need to such a user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local_postgres.processes import ask, eventually, processes_in, script, user_of
from tests.local_postgres.unprivileged import lend

CLAIM = """
import json, sys
from pathlib import Path
from rowcall.local_postgres.account import claim
from rowcall.base.errors import LocalPostgresError
try:
    claim(Path(sys.argv[1]))
except LocalPostgresError as error:
    print(json.dumps({"error": str(error)}), flush=True)
"""


@pytest.fixture(scope="session")
def borrowed() -> Iterator[dict[str, Any]]:
    """Yield how to start a process as an ordinary user: this one or, if this is root, one to whom it lends files."""
    if os.geteuid() != 0:
        yield {}
        return
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # every user may enter it
    try:
        yield lend(folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def folder(borrowed: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder that belongs to that user."""
    own = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(own, borrowed.get("user", -1), borrowed.get("group", -1))
    try:
        yield own
        eventually(lambda: not processes_in(own))
    finally:
        shutil.rmtree(own)


def test_an_ordinary_user_has_a_server_of_their_own(borrowed: dict[str, Any], folder: Path, source: str) -> None:
    home = folder / "home"

    with user_of(home, source, **borrowed) as user:
        report = user.report()

        assert "error" not in report
        assert report["source"] == source
        assert ask(report["url"], "SELECT 1") == 1
        owners = {path.stat().st_uid for path in (home, *home.iterdir(), *(home / "postgres").iterdir())}
        assert owners == {home.parent.stat().st_uid}


def test_a_home_without_the_right_to_write_is_refused(borrowed: dict[str, Any], folder: Path) -> None:
    home = folder / "home"
    home.mkdir(mode=0o555)

    with user_of(home, **borrowed) as user:
        error = user.report()["error"]

    assert "ROWCALL_HOME" in error
    assert str(home) in error


def test_a_cluster_of_somebody_else_is_refused(borrowed: dict[str, Any]) -> None:
    with script(CLAIM, "/usr", **borrowed) as user:
        error = user.report()["error"]

    assert "/usr belongs to the OS user root" in error
    assert "ROWCALL_HOME" in error
