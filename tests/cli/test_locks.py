"""Another transaction has locked a table: each command ends with a sentence, instead of waiting without a word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.outages import LOCKED
from tests.support.processes import LIMIT_SECONDS

# A command that waits for a tenth of a second; a user's waits for eight.
IMPATIENT = """
from rowcall.base.watched import LOCK_SECONDS, InternalConnection, lock_limit
InternalConnection.prologue = InternalConnection.prologue.replace(lock_limit(LOCK_SECONDS), lock_limit(0.1))
from rowcall.cli.main import main
main()
"""

# All but the one with the schema's version, which each command reads first.
TABLES = """
SELECT string_agg(format('%s', oid::regclass), ', ') FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'rowcall'::regnamespace AND relname <> 'schema_version'
"""

COMMANDS = [
    "runs list",
    "runs show 1",
    "runs explain 1",
    "runs cancel 1",
    "runs retry --all",
    "operations stop 1",
    "enqueue noop",
    "queues list",
    "queues pause default",
    "definitions list",
    "definitions apply",
    "keys list",
    "effects list",
    "prune --yes",
    "erase 1 --yes",
    "worker once",
    "migrate",
]


@pytest.fixture(scope="module")
def locked(module_url: str) -> Iterator[None]:
    """Hold these locks while the tests of this module run."""
    with database.transaction(module_url) as holder:
        database.fetch_all(holder, f"LOCK TABLE {database.fetch_value(holder, TABLES)} IN ACCESS EXCLUSIVE MODE")
        yield


def impatient(environment: dict[str, str], command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", IMPATIENT, *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_needs_a_locked_table_says_so(environment: dict[str, str], command: str) -> None:
    ended = impatient(environment, command)
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1), ended.stderr
    assert ended.stderr == f"rowcall: {LOCKED}\n"


@pytest.mark.usefixtures("locked")
def test_doctor_names_the_lock_as_a_problem(environment: dict[str, str]) -> None:
    ended = impatient(environment, "doctor")
    assert ended.returncode == 1
    assert "\nFIX   database: another transaction holds a needed lock: try again in a moment;" in ended.stdout
