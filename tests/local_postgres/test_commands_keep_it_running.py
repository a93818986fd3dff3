"""A command that reads again and again keeps the local server running between its reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.server import open_server
from rowcall.status import Status
from rowcall.testing.server import UNSAFE_AND_FAST
from tests.support.live_terminal import live_terminal
from tests.support.processes import rowcall
from tests.support.rows import run_in
from tests.support.run_log import insert_lines

# Inserts what the command shows next.
Insert = Callable[[PgConnection, int], object]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose database is a local server, which no process uses."""
    environment = {**os.environ, "ROWCALL_HOME": str(tmp_path / "home"), "ROWCALL_POSTGRES": "auto"}
    with open_server(tmp_path / "home", "auto", options=UNSAFE_AND_FAST) as server:
        assert rowcall(environment, "migrate").returncode == 0
        with database.transaction(server.url) as connection:
            assert run_in(connection, Status.RUNNING)["id"] == 1
    return environment


def starts(home: Path) -> int:
    return Home(home).log.read_text().count("LOG:  starting PostgreSQL")


@pytest.mark.parametrize(
    ("words", "insert", "shows"),
    [
        (["list", "--watch"], lambda connection, _: run_in(connection, Status.QUEUED), "^ *{} +noop"),
        (["tail", "1", "--follow"], lambda connection, number: insert_lines(connection, 1, [number]), "line {}$"),
    ],
    ids=["list --watch", "tail --follow"],
)
def test_between_its_reads(
    environment: dict[str, str], tmp_path: Path, words: list[str], insert: Insert, shows: str
) -> None:
    home = tmp_path / "home"
    before = starts(home)
    with live_terminal(environment, "runs", *words) as terminal:
        terminal.wait_for("using the local PostgreSQL")
        for number in (2, 3, 4):
            with open_server(home, "auto") as server, database.transaction(server.url) as connection:
                insert(connection, number)
            terminal.wait_for(shows.format(number))
    assert starts(home) == before + 1
