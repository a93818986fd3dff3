"""Where a command prints, and where it starts: a full disk, no output at all, and a folder that is gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import click
import pytest

from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.database import fetch_value
from tests.support.processes import LIMIT_SECONDS, redirected, rowcall
from tests.support.terminal import on_terminal

COMMANDS = [("runs", "list"), ("types",), ("doctor",), ("enqueue", "noop"), ("runs", "show", "1"), ("--help",)]


@pytest.mark.parametrize("arguments", [*COMMANDS, ("runs", "list", "--watch")], ids=" ".join)
def test_a_pipe_that_nobody_reads_ends_it_without_a_word(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    rowcall(environment, "enqueue", "noop")
    assert unread(environment, *arguments) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("arguments", [("runs", "show", "999999"), ("runz",), ("worker", "once", "--limit", "x")])
def test_an_error_that_nobody_reads_ends_it_too(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    assert unread(environment, *arguments, errors_too=True) == (128 + signal.SIGPIPE, b"")


def unread(environment: dict[str, str], *arguments: str, errors_too: bool = False) -> tuple[int, bytes]:
    """Return the exit code of a command whose output goes to a closed pipe, and its errors if they do not."""
    reads, writes = os.pipe()
    os.close(reads)
    errors = writes if errors_too else subprocess.PIPE
    ended = subprocess.run(
        own_command(*arguments), env=environment, stdout=writes, stderr=errors, timeout=LIMIT_SECONDS, check=False
    )
    os.close(writes)
    return ended.returncode, ended.stderr or b""


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_is_named_in_one_sentence(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    rowcall(environment, "enqueue", "noop")
    ended = redirected(environment, "> /dev/full", *arguments)
    assert ended.returncode == 1
    assert ended.stderr == (
        "rowcall: the output or a file cannot be written: No space left on device;"
        " changes that the command has already made remain\n"
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_without_an_output_a_command_does_its_work(environment: dict[str, str], arguments: tuple[str, ...]) -> None:
    rowcall(environment, "enqueue", "noop")
    usual = rowcall(environment, *arguments).returncode
    asked = runs(environment)
    ended = redirected(environment, ">&-", *arguments)
    assert (ended.returncode, ended.stderr) == (usual, "")
    assert runs(environment) == asked + (arguments[0] == "enqueue")


@pytest.mark.parametrize("words", [("create", "shop", "--scope", "read"), ("rotate", "{key}")], ids=" ".join)
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [("> /dev/full", "the key cannot be shown: No space left on device"), (">&-", "the key cannot be shown, because")],
)
def test_a_key_that_nobody_could_read_is_not_made(
    environment: dict[str, str], fresh_url: str, words: tuple[str, ...], redirection: str, reason: str
) -> None:
    environment = {**environment, "DATABASE_URL": fresh_url}
    made = rowcall(environment, "keys", "create", "old", "--scope", "read", "--json")
    key_id = str(json.loads(made.stdout)["id"])
    before = rowcall(environment, "keys", "list", "--json").stdout
    ended = redirected(environment, redirection, "keys", *(word.replace("{key}", key_id) for word in words))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"rowcall: {reason}")
    assert ended.stderr.endswith("; nothing was changed\n")
    assert rowcall(environment, "keys", "list", "--json").stdout == before


def runs(environment: dict[str, str]) -> int:
    with database.transaction(environment["DATABASE_URL"]) as connection:
        number: int = fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs")
        return number


@pytest.mark.parametrize("words", [("doctor",), ("runs", "list")], ids=" ".join)
def test_a_long_sentence_is_wrapped_at_words_on_a_terminal_and_left_whole_in_a_pipe(
    environment: dict[str, str], words: tuple[str, ...]
) -> None:
    environment = {**environment, "DATABASE_URL": "localhost", "ROWCALL_POLL": "often"}
    ended = rowcall(environment, *words)
    whole = max((ended.stdout + ended.stderr).splitlines(), key=len)
    assert len(whole) > 100
    seen = on_terminal(environment, *words, columns=40, errors_too=True)
    assert max(map(len, map(click.unstyle, seen))) <= 60, "only one that cannot be broken is longer than the line"
    assert whole in " ".join(click.unstyle(" ".join(seen)).split()).replace("FIX ", "FIX   ")


def test_a_group_without_a_command_shows_its_help_alone(environment: dict[str, str]) -> None:
    shown = rowcall(environment, "runs")
    assert shown.returncode == 2
    assert shown.stderr.startswith("Usage: rowcall runs")
    assert shown.stderr.count("Usage:") == 1
    assert "Error" not in shown.stderr


@pytest.mark.parametrize(
    "words", [("runs", "list", "--status", "faild"), ("enqueue", "noop", "{}", "--run-at", "never")]
)
def test_a_usage_error_is_wrapped_as_other_sentences_are(
    environment: dict[str, str], fresh_url: str, words: tuple[str, ...]
) -> None:
    environment = {**environment, "DATABASE_URL": fresh_url}
    *_, whole = rowcall(environment, *words).stderr.splitlines()
    assert (whole[:7], len(whole) > 80) == ("Error: ", True)
    seen = on_terminal(environment, *words, columns=60, errors_too=True)
    assert max(map(len, seen)) <= 60
    assert " ".join(seen).endswith(whole)


def test_a_command_within_a_sentence_stays_on_one_line(environment: dict[str, str], fresh_url: str) -> None:
    environment = {**environment, "DATABASE_URL": fresh_url}
    seen = on_terminal(environment, "runs", "show", "99", columns=30, errors_too=True)
    assert seen == ["rowcall: there is no run 99;", "`rowcall runs list` shows all", "runs"]


@pytest.mark.parametrize("arguments", [("types",), ("worker", "once")], ids=" ".join)
def test_a_folder_that_is_gone_is_named_as_the_cause(
    environment: dict[str, str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh", *own_command(*arguments)],
        env={**environment, "ROWCALL_APP": "shop"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "rowcall: the current folder has been deleted: change to one that exists\n"
