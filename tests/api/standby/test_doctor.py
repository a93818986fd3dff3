"""`rowcall doctor` examines the standby of ROWCALL_READ_URL, and the command line reads only from DATABASE_URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doctor import well_kept
from tests.support.processes import rowcall
from tests.support.standby import Leader, StandbyServer


@pytest.fixture
def environment(environment: dict[str, str], ahead: Leader, behind: StandbyServer, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a command that knows both servers."""
    return well_kept({**environment, "ROWCALL_READ_URL": behind.url})


def doctor(environment: dict[str, str]) -> str:
    """Return what doctor says about the standby."""
    done = rowcall(environment, "doctor")
    [line] = [line for line in done.stdout.splitlines() if " standby: " in line]
    return line


def test_a_standby_that_has_everything_is_well(environment: dict[str, str]) -> None:
    assert "can answer reads" in doctor(environment)


def test_a_standby_that_stays_behind_is_found(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], ahead: Leader, behind: StandbyServer
) -> None:
    with behind.paused():
        ahead.run("UPDATE rowcall.schema_version SET fits = '0000'")
        said = doctor(environment)
        ahead.run("UPDATE rowcall.schema_version SET fits = '0001'")
    assert "bytes are left, among them the last migration" in said
    assert "the API reads from the leader" in said
    assert "transaction is" in said


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("{leader}", "not a standby"),
        ("{other}", "another database"),
        ("postgresql://nobody:hush@127.0.0.1:1/nowhere", "check ROWCALL_READ_URL"),
    ],
)
def test_a_wrong_url_is_found(
    environment: dict[str, str], ahead: Leader, behind: StandbyServer, url: str, says: str
) -> None:
    other = behind.url.rpartition("/")[0] + "/postgres"
    said = doctor({**environment, "ROWCALL_READ_URL": url.format(leader=ahead.url, other=other)})
    assert says in said
    assert "hush" not in said


def test_without_a_standby_doctor_does_not_mention_one(environment: dict[str, str]) -> None:
    del environment["ROWCALL_READ_URL"]
    assert " standby: " not in rowcall(environment, "doctor").stdout


def test_commands_that_read_can_be_run_on_the_standby(environment: dict[str, str], behind: StandbyServer) -> None:
    for command in (("runs", "list"), ("workers",), ("queues", "list"), ("failures",), ("definitions", "list")):
        done = rowcall({**environment, "DATABASE_URL": behind.url}, *command)
        assert done.returncode == 0, done.stderr
    refused = rowcall({**environment, "DATABASE_URL": behind.url}, "queues", "pause", "default")
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
