"""Which database a command uses: the one that is named, or a local server that somebody asked for; never a surprise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from tests.support.processes import rowcall
from tests.support.terminal import on_terminal


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment that names no database."""
    return {**os.environ, "ROWCALL_HOME": str(tmp_path / "home")}


@pytest.mark.parametrize(
    "words",
    [
        *(["migrate"], ["runs", "list"], ["worker", "once"], ["api", "--port", "0"], ["prune", "--yes"]),
        *(["enqueue", "noop"], ["definitions", "apply"], ["keys", "create", "x", "--scope", "read"]),
    ],
)
def test_without_a_database_a_command_makes_none_and_says_what_to_set(
    bare: dict[str, str], words: list[str], tmp_path: Path
) -> None:
    refused = rowcall(bare, *words)
    assert (refused.returncode, refused.stdout) == (3, "")
    for remedy in ("DATABASE_URL", "rowcall up", str(tmp_path / "home")):
        assert remedy in refused.stderr
    assert not (tmp_path / "home").exists()


def test_a_server_is_made_where_the_environment_asks_for_one(bare: dict[str, str], tmp_path: Path) -> None:
    made = rowcall({**bare, "ROWCALL_POSTGRES": "auto"}, "migrate")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "home" / "postgres").exists()


def test_a_server_that_exists_is_used_and_a_person_is_told(bare: dict[str, str], tmp_path: Path) -> None:
    with open_server(tmp_path / "home", "auto", options=UNSAFE_AND_FAST):
        assert rowcall(bare, "migrate").stderr == ""
        # It reads the database's clock first.
        listed = on_terminal(bare, "runs", "list", "--created-after", "10m", errors_too=True)
    told = [line for line in listed if "using the local PostgreSQL" in line]
    assert told == listed[:1]
    assert listed[0] == f"rowcall: using the local PostgreSQL in {tmp_path / 'home'}"


@pytest.mark.parametrize("words", [["runs", "list"], ["doctor"]])
def test_a_misspelt_setting_is_named_with_the_nearest_one(environment: dict[str, str], words: list[str]) -> None:
    misspelt = {**environment, "ROWCALL_HEARTBEET": "10", "ROWCALL_APP_FILE": "", "ROWCALL_ZZZ": "1"}
    said = rowcall(misspelt, *words).stderr.splitlines()
    assert said == [
        "rowcall: ROWCALL_HEARTBEET is not a setting; did you mean ROWCALL_HEARTBEAT?",
        "rowcall: ROWCALL_ZZZ is not a setting",
    ]


def test_doctor_ends_with_1_for_a_misspelt_setting(environment: dict[str, str]) -> None:
    said = rowcall({**environment, "ROWCALL_HEARTBEET": "10"}, "doctor")
    assert said.returncode == 1
    assert "FIX   settings: ROWCALL_HEARTBEET is not a setting" in said.stdout
