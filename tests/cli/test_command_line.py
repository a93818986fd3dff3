"""The command line: tables for people, JSON for programs, and reliable exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.schema import REVISION
from rowcall.status import Status
from tests.support.processes import redirected, rowcall

ON_PATH = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def made(environment: dict[str, str], *arguments: str) -> int:
    """Enqueue a run, and return its id."""
    asked = rowcall(environment, "enqueue", "noop", *arguments, "--json")
    assert asked.returncode == 0, asked.stderr
    run_id: int = json.loads(asked.stdout)["run_id"]
    return run_id


def test_help_names_every_command_without_a_database() -> None:
    helped = rowcall({"DATABASE_URL": "postgresql://127.0.0.1:1/none"}, "--help")
    assert helped.returncode == 0
    every = "new types api definitions demo doctor effects enqueue keys migrate prune queues runs up worker"
    for name in every.split():
        assert f"\n  {name} " in helped.stdout


LISTED = """
import atexit, sys
heavy = {"alembic", "flask", "rich", "sqlalchemy"}
atexit.register(lambda: print(*sorted(sys.modules.keys() & heavy), file=sys.stderr))
from rowcall.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "completion", [{}, {"_ROWCALL_COMPLETE": "bash_complete", "COMP_WORDS": "rowcall ", "COMP_CWORD": "1"}]
)
def test_a_list_of_all_commands_loads_nothing_that_only_api_and_migrations_need(completion: dict[str, str]) -> None:
    told = subprocess.run(
        [sys.executable, "-c", LISTED, "--help"], env=completion, capture_output=True, text=True, check=True
    )
    assert {"api", "migrate", "worker"} <= set(told.stdout.replace("plain,", "").split())
    assert told.stderr.split() == []


NEEDS_MORE = ("api", "migrate")
LOADED = f"""
import sys
import click
from rowcall.cli.main import rowcall
for name in set(rowcall.list_commands(click.Context(rowcall))) - {set(NEEDS_MORE)}:
    rowcall.get_command(click.Context(rowcall), name)
from rowcall.job_types import load_catalogue
from rowcall_worker.handlers import load_handlers
load_handlers(load_catalogue(None), None)
print(*sorted(sys.modules.keys() & {{"alembic", "flask", "rich", "sqlalchemy"}}))
"""


def test_a_worker_that_cron_wakes_each_minute_loads_nothing_that_only_api_and_migrations_need() -> None:
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_what_we_start_of_ourselves_is_ours_though_the_folder_has_something_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").touch()
    told = subprocess.run(own_command("--version"), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("rowcall, version ")


# A module whose import is interrupted.
CTRL_C = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.mark.parametrize("module", ["rowcall_shop/job_types.py", "click.py", "marshmallow.py"])
def test_ctrl_c_ends_a_command_without_a_word_even_during_its_imports(
    environment: dict[str, str], tmp_path: Path, module: str
) -> None:
    file = tmp_path / module
    file.parent.mkdir(exist_ok=True)
    file.write_text(CTRL_C)
    # Not through `rowcall`, whose process has imported everything already.
    ended = redirected(
        {**environment, "PYTHONPATH": str(tmp_path), "ROWCALL_APP": "rowcall_shop"}, "; exit $?", "types"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_run_is_asked_for_shown_and_listed(environment: dict[str, str]) -> None:
    run_id = made(environment, '{"hello": "world"}', "--queue", "mail")
    shown = json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)
    assert (shown["status"], shown["payload"], shown["queue"]) == ("queued", {"hello": "world"}, "mail")
    listed = rowcall(environment, "runs", "list", "--status", "queued").stdout.splitlines()
    assert listed[0].split()[:3] == ["id", "job_type", "status"]
    assert str(run_id) in [line.split()[0] for line in listed]


def test_the_same_key_says_that_nothing_was_added(environment: dict[str, str]) -> None:
    run_id = made(environment, "{}", "--key", "once")
    told = f"run {run_id} already exists: nothing added\n"
    again = rowcall(environment, "enqueue", "noop", "{}", "--key", "once")
    assert (again.stdout, again.returncode) == (told, 0)
    # For a script that must know.
    again = rowcall(environment, "enqueue", "noop", "{}", "--key", "once", "--fail-if-exists")
    assert (again.stdout, again.returncode) == (told, 1)
    assert rowcall(environment, "enqueue", "noop", "{}", "--key", "another", "--fail-if-exists").returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(environment: dict[str, str], shell: str) -> None:
    told = rowcall(environment, "completion", shell)
    assert (told.returncode, told.stderr) == (0, "")
    assert "_ROWCALL_COMPLETE" in told.stdout


def test_the_line_that_installs_it_stands_beside_the_sentence_that_says_so(environment: dict[str, str]) -> None:
    lines = rowcall(environment, "completion", "--help").stdout.splitlines()
    said = next(place for place, line in enumerate(lines) if "the line for your shell once" in line)
    assert ["bash" in lines[said + 2], "zsh" in lines[said + 3], "fish" in lines[said + 4]] == [True] * 3
    assert len(lines[said + 1].strip()) == 0


def test_bash_completes_commands_and_options(environment: dict[str, str]) -> None:
    script = rowcall(environment, "completion", "bash").stdout
    typed = f"""{script}
COMP_WORDS=(rowcall runs list --sta); COMP_CWORD=3; _rowcall_completion rowcall; echo "${{COMPREPLY[@]}}"
COMPREPLY=(); COMP_WORDS=(rowcall runs ex); COMP_CWORD=2; _rowcall_completion rowcall; echo "${{COMPREPLY[@]}}"
"""
    shown = subprocess.run(
        ["/bin/bash", "-c", typed], env={**os.environ, **environment, **ON_PATH}, capture_output=True, text=True
    )
    assert shown.stdout.splitlines() == ["--status", "explain"], shown.stderr


def test_a_run_is_steered_through_its_life(environment: dict[str, str]) -> None:
    run_id = str(made(environment, "{}", "--run-at", "2100-01-01T00:00:00+00:00"))
    steps = [("run-now", "queued"), ("cancel", "cancelled"), ("retry", "queued")]
    for event, status in steps:
        assert rowcall(environment, "runs", event, run_id).stdout == f"run {run_id} is {status}\n"
    later = rowcall(environment, "runs", "reschedule", run_id, "--to", "2100-01-01T00:00:00Z", "--json")
    assert json.loads(later.stdout)["run_at"] == "2100-01-01T00:00:00+00:00"
    assert rowcall(environment, "runs", "cancel", run_id).returncode == 0
    assert rowcall(environment, "runs", "explain", run_id).stdout.startswith(f"run {run_id} was cancelled at 2")
    cloned = json.loads(rowcall(environment, "runs", "clone", run_id, "--json").stdout)
    assert (cloned["status"], cloned["id"] > int(run_id)) == (Status.QUEUED, True)


def test_a_time_may_be_in_words_and_is_then_in_utc(environment: dict[str, str]) -> None:
    run_id = made(environment, "{}", "--run-at", "tomorrow 09:00")
    run = json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)
    created, run_at = (datetime.fromisoformat(run[name]).astimezone(UTC) for name in ("created_at", "run_at"))
    assert (run_at.date() - created.date(), run_at.time()) == (timedelta(days=1), time(9))
    for option, found in (("--created-after", True), ("--created-before", False)):
        listed = rowcall(environment, "runs", "list", option, "10m", "--run-before", "2 days", "--json").stdout
        assert (run_id in [one["id"] for one in json.loads(listed)]) is found


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["runs", "show", "999999"], 1, "there is no run 999999; `rowcall runs list` shows all runs"),
        (["enqueue", "nop"], 1, "there is no job type 'nop'; known here: "),
        (["enqueue", "noopp"], 1, "; did you mean 'noop'?\n"),
        (["enqueue", "noop", "[1]"], 2, "the payload must be a JSON object"),
        (["enqueue", "noop", "{"], 2, "the payload is not JSON"),
        (
            ["enqueue", "noop", "{}", "--run-at", "soon"],
            2,
            "Invalid value for '--run-at': 'soon' is not a time",
        ),
        (["runs", "list", "--created-after", "soon"], 2, "'--created-after': 'soon' is not a time"),
        (["enqueue", "noop", "{}", "--queue", "No Such"], 1, "queue: must be lower-case words"),
        (["keys", "revoke", "999"], 1, "no key has the id 999"),
        (["nothing"], 2, "No such command 'nothing'.\n"),
        (["runz"], 2, "No such command 'runz'.  Did you mean 'runs'?\n"),
        (["runs", "shw"], 2, "No such command 'shw'.  Did you mean 'show'?\n"),
        (
            ["enqueue", "prune_runs", '{"batch": "x", "kept": 7}'],
            1,
            "payload: batch: Not a valid integer, kept: Unknown field\n",
        ),
    ],
)
def test_what_is_refused_says_why_and_ends_with_its_code(
    environment: dict[str, str], arguments: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, *arguments)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert complaint in refused.stderr
    assert "Traceback" not in refused.stderr


def test_what_a_status_does_not_allow_is_refused_with_what_it_does(environment: dict[str, str]) -> None:
    run_id = made(environment, "{}")
    refused = rowcall(environment, "runs", "retry", str(run_id))
    assert refused.returncode == 1
    assert f"run {run_id} is queued (lease 0): retry is not allowed; allowed: cancel, run now" in refused.stderr


def test_a_database_that_is_not_there_ends_with_three_and_hides_the_password(environment: dict[str, str]) -> None:
    gone = rowcall({**environment, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/none"}, "runs", "list")
    assert gone.returncode == 3
    assert gone.stderr.startswith("rowcall: no connection to postgresql://me:***@127.0.0.1:1/none: ")


@pytest.mark.parametrize(
    ("setting", "example"),
    [
        ("DATABASE_URL", "postgresql://user@host:5432/database (a password follows the user after a colon)"),
        ("ROWCALL_SMTP_URL", "smtp://user@host:587 or smtps://user@host:465 (a password follows the user"),
    ],
)
def test_the_example_of_a_url_is_not_redacted(environment: dict[str, str], setting: str, example: str) -> None:
    refused = rowcall({**environment, setting: "localhost"}, "runs", "list")
    assert refused.returncode == 2
    assert example in refused.stderr


def test_a_wrong_setting_ends_with_two_and_names_it(environment: dict[str, str]) -> None:
    wrong = rowcall({**environment, "ROWCALL_LEASE": "soon"}, "runs", "list")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "rowcall: ROWCALL_LEASE is 'soon' and must be a number from 1 to 86400\n",
    )


def test_a_key_is_shown_once_listed_without_its_secret_and_revoked(environment: dict[str, str]) -> None:
    key = json.loads(rowcall(environment, "keys", "create", "ci", "--scope", "read", "--json").stdout)["key"]
    prefix, secret = key.split("_")[1:]
    listed = rowcall(environment, "keys", "list").stdout
    assert prefix in listed
    assert secret not in listed
    [mine] = [
        row for row in json.loads(rowcall(environment, "keys", "list", "--json").stdout) if row["prefix"] == prefix
    ]
    assert rowcall(environment, "keys", "revoke", str(mine["id"])).stdout == f"key {mine['id']} is revoked\n"
    assert rowcall(environment, "keys", "revoke", str(mine["id"])).returncode == 1


def test_lists_say_when_they_are_empty(fresh_url: str, environment: dict[str, str]) -> None:
    empty = {**environment, "DATABASE_URL": fresh_url}
    assert rowcall(empty, "runs", "list").stdout.startswith("there are no runs")
    assert rowcall(empty, "keys", "list").stdout.startswith("there are no keys; `rowcall keys create")


def test_migrate_says_what_it_did(empty_url: str, environment: dict[str, str]) -> None:
    empty = {**environment, "DATABASE_URL": empty_url}
    first = rowcall(empty, "migrate").stdout.splitlines()
    assert first[0] == f"the schema was empty, and is now {REVISION}:"
    declared = [f"+ {name}: new, {name}, due next" for name in ("expire_keys", "prune_runs")]
    assert len(first) == 1 + int(REVISION) + len(declared)
    assert [line.rpartition(" next")[0] + " next" for line in first[-2:]] == declared
    second = rowcall(empty, "migrate").stdout.splitlines()
    assert second == [f"the schema is already {REVISION}: nothing to do", "definitions: 2 unchanged"]
    refused = rowcall(empty, "migrate", "--to", "nowhere")
    assert refused.returncode == 1
    assert refused.stderr.startswith("rowcall: cannot migrate to 'nowhere': there is no such revision; ")
    # It is refused before it asks whether to go back.
    assert rowcall(empty, "migrate", "--to", "0").stderr.startswith("rowcall: cannot migrate to '0': there is no such ")


@pytest.fixture
def broken(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return an environment with an app that cannot be imported."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").touch()
    (tmp_path / "broken" / "job_types.py").write_text("import json\nimport there_is_no_such_module\n")
    return {**environment, "ROWCALL_APP": "broken", "PYTHONPATH": str(tmp_path)}


def test_migrate_changes_nothing_where_the_app_cannot_be_imported(broken: dict[str, str], empty_url: str) -> None:
    refused = rowcall({**broken, "DATABASE_URL": empty_url}, "migrate")
    assert (refused.returncode, refused.stdout) == (1, "")
    with database.transaction(empty_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regnamespace('rowcall') IS NULL")


def test_an_app_that_cannot_be_imported_is_a_sentence_that_names_the_line(broken: dict[str, str]) -> None:
    refused = rowcall(broken, "enqueue", "noop")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("rowcall: ROWCALL_APP is 'broken', and importing broken.job_types failed at ")
    assert refused.stderr.endswith(
        "job_types.py, line 2: ModuleNotFoundError: No module named 'there_is_no_such_module'\n"
    )
