"""`rowcall definitions`: list, show, apply, pause, resume, run and remove definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from tests.cli.definitions.saying import TOML, Say, cells, well
from tests.definitions.making import overdue
from tests.support.processes import rowcall
from tests.support.shop import Shop

pytestmark = pytest.mark.usefixtures("example_app")


def test_a_definition_of_the_code_goes_from_migrate_to_a_run_that_is_done(
    fresh_url: str, environment: dict[str, str]
) -> None:
    shop = Shop(environment, fresh_url)
    migrated = rowcall(shop.environment, "migrate").stdout
    assert "\n+ stocktake: new, shop_pack, due next 20" in migrated
    with database.transaction(fresh_url) as connection:
        overdue(connection, "stocktake")
    once = rowcall(shop.environment, "worker", "once")
    assert "claimed 1, succeeded 1" in once.stdout, once.stderr
    told = json.loads(rowcall(shop.environment, "definitions", "show", "stocktake", "--json").stdout)
    assert (told["managed_by"], told["revision"]) == ("code", 1)
    assert [one["outcome"] for one in told["occurrences"]] == ["enqueued", "missed", "missed"]
    run = shop.row(told["occurrences"][0]["run_id"])
    assert (run["status"], run["result"]) == ("succeeded", {"packed": 1, "attempt": 1})
    assert run["created_by"] == "schedule:stocktake"


def test_refusals_are_sentences_on_stderr_with_an_exit_code(environment: dict[str, str], tmp_path: Path) -> None:
    missing = rowcall(environment, "definitions", "show", "none")
    assert (missing.returncode, missing.stdout, missing.stderr) == (
        1,
        "",
        "rowcall: there is no definition 'none'; `rowcall definitions list` shows all definitions\n",
    )
    unread = rowcall(environment, "definitions", "apply", str(tmp_path / "none.toml"))
    assert (unread.returncode, unread.stderr) == (
        1,
        f"rowcall: {tmp_path}/none.toml: cannot be read: No such file or directory\n",
    )
    assert rowcall(environment, "definitions", "preview", "--schedule", "* *").returncode == 2


# List and show


def test_a_broken_definition_is_listed_with_its_problem_and_hides_no_other_one(applied: Say, fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection, "UPDATE rowcall.job_definitions SET time_zone = 'Mars/Olympus' WHERE name = 'nightly'"
        )
    problems = {one["name"]: one["problem"] for one in json.loads(well(applied("list", "--json")))}
    assert "Mars/Olympus" in problems.pop("nightly")
    assert problems == {"hourly": None, "hand": None}
    assert "problem" in cells(applied("list"))[0]


def test_a_table_shows_each_definition_with_what_is_due_by_its_own_clock(applied: Say) -> None:
    heading, *rows = cells(applied("list"))
    assert heading == [
        *("name", "job_type", "schedule", "time_zone", "next_run_at", "paused_at", "revision", "managed_by", "id")
    ]
    assert [row[:4] for row in rows] == [
        ["hand", "noop", "-", "UTC"],
        ["hourly", "noop", "0 * * * *", "UTC"],
        ["nightly", "cleanup_nightly", "30 2 * * *", "Europe/Berlin"],
    ]
    assert rows[0][4:-1] == ["-", "-", "1", "file"]
    assert " 02:30:00+0" in rows[2][4]


def test_programs_get_the_content_as_it_can_be_sent_again_and_the_state(applied: Say) -> None:
    hand, hourly, nightly = json.loads(well(applied("list", "--json")))
    assert (hand["schedule"], hand["next_run_at"], hourly["name"]) == (None, None, "hourly")
    assert (nightly["max_lateness"], nightly["jitter"], nightly["payload"]) == (21600.0, 90.0, {"day": "{date-1}"})
    assert set(nightly) >= {"id", "revision", "next_run_at", "paused_at", "managed_by", "created_at", "updated_at"}
    assert json.loads(well(applied("show", "nightly", "--json"))) == {**nightly, "occurrences": []}


def test_people_read_durations_in_words_and_what_became_of_the_latest_times(applied: Say, fresh_url: str) -> None:
    fields = dict(line.split(maxsplit=1) for line in well(applied("show", "nightly")).splitlines()[:-2])
    assert (fields["max_lateness"], fields["jitter"], fields["payload"]) == ("6 h", "1 min 30 s", '{"day": "{date-1}"}')
    assert well(applied("show", "nightly")).endswith("\n\nno nominal time has passed yet\n")
    assert well(applied("show", "hand")).endswith("\n\nit has no schedule: run it with `rowcall definitions run-now`\n")
    with database.transaction(fresh_url) as connection:
        database.fetch_all(
            connection,
            "INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, reason, revision)"
            " SELECT id, moment, 'missed', 'too late', 1"
            " FROM rowcall.job_definitions, unnest(%(moments)s::timestamptz[]) AS moment WHERE name = 'nightly'",
            {"moments": ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00"]},
        )
    *_, heading, first, second = cells(applied("show", "nightly"))
    assert heading == ["nominal_at", "outcome", "run_id", "revision", "created_at", "reason"]
    assert (first[0], first[1], first[-1]) == ("2026-03-29 03:00:00+02:00", "missed", "too late")
    assert second[0] == "2026-03-28 02:30:00+01:00"
    assert cells(applied("show", "nightly", "--occurrences", "1"))[-1] == first


def test_empty_states_say_what_to_do(say: Say, tmp_path: Path) -> None:
    assert well(say("list")) == "there are no definitions; `rowcall definitions apply FILE` creates them\n"
    assert well(say("list", "--json")) == "[]\n"
    (tmp_path / "empty.toml").write_text("[definitions]")
    assert well(say("apply", "empty.toml")) == "empty.toml has no definitions\n"
    assert well(say("preview", "--until", "tomorrow")) == "nothing would run\n"
    assert say("show", "--occurrences", "x", "a").code == 2


# Apply


def test_a_dry_run_tells_everything_and_changes_nothing(say: Say, fresh_url: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(TOML)
    told = well(say("apply", "jobs.toml", "--dry-run")).splitlines()
    assert [line.partition(":")[0] for line in told] == ["+ hand", "+ hourly", "+ nightly", "dry run"]
    assert well(say("list", "--json")) == "[]\n"
    well(say("apply", "jobs.toml"))
    with database.transaction(fresh_url) as connection:
        overdue(connection, "hourly")
    before = content_of(fresh_url)
    (tmp_path / "jobs.toml").write_text(TOML.replace("0 * * * *", "5 * * * *").replace("hand]", "foot]"))
    told = well(say("apply", "jobs.toml", "--dry-run", "--prune")).splitlines()
    assert [line.partition(":")[0] for line in told] == ["+ foot", "- hand", "~ hourly", "definitions", "dry run"]
    assert content_of(fresh_url) == before


def content_of(url: str) -> list[Any]:
    tables = ("job_definitions", "schedule_occurrences", "job_runs", "audit_log")
    with database.transaction(url) as connection:
        return [database.fetch_all(connection, f"SELECT * FROM rowcall.{table} ORDER BY 1, 2") for table in tables]


def test_what_applying_did_is_told_to_programs_too(applied: Say, tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(TOML.replace("6h", "3h").replace("hand]", "foot]"))
    assert json.loads(well(applied("apply", "jobs.toml", "--json"))) == [
        {"name": "foot", "change": "created", "changes": {"job_type": {"before": None, "after": "noop"}, **DEFAULTS}},
        {"name": "hand", "change": "extra", "changes": {}},
        {"name": "hourly", "change": "unchanged", "changes": {}},
        {
            "name": "nightly",
            "change": "changed",
            "changes": {"max_lateness": {"before": 21600.0, "after": 10800.0}},
        },
    ]


DEFAULTS = {
    name: {"before": None, "after": value}
    for name, value in {
        "payload": {},
        "time_zone": "UTC",
        "catch_up": "latest",
        "overlap": "skip",
        "jitter": 0.0,
        "priority": 0,
    }.items()
}


def test_a_file_with_mistakes_tells_each_on_a_line_and_changes_nothing(applied: Say, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text('definitions:\n  a: {job_type: noop, schedule: "* *", queu: x}\n  b: {}\n')
    refused = applied("apply", "bad.yaml", "--prune")
    assert (refused.code, refused.stdout) == (1, "")
    first, *lines = refused.stderr.splitlines()
    assert first == "rowcall: bad.yaml: nothing was applied:"
    assert [line.split(":")[0] for line in lines] == [
        "definition 'a', schedule",
        "definition 'a', queu",
        "definition 'b', job_type",
    ]
    assert len(json.loads(well(applied("list", "--json")))) == 3
    assert applied("apply", "jobs.toml", "more.toml").code == 2


# Pause, resume, run now, remove


def test_who_removes_what_the_code_declares_is_told_that_it_comes_back(say: Say) -> None:
    well(say("apply"))
    declared = json.loads(well(say("list", "--json")))[0]["name"]
    removed = say("remove", declared)
    assert (removed.code, removed.stdout) == (0, f"definition {declared} is removed\n")
    assert removed.stderr.startswith(f"the code declares {declared}, so the next `rowcall migrate` creates it again: ")
    assert f"`rowcall definitions pause {declared}`" in removed.stderr


def test_a_definition_is_paused_resumed_run_and_removed(applied: Say) -> None:
    assert well(applied("pause", "nightly")).startswith("definition nightly has been paused since 20")
    assert cells(applied("list"))[3][5].startswith("20")
    resumed = well(applied("resume", "nightly"))
    assert resumed.startswith("definition nightly is active, due next 20")
    assert " 02:30:00+0" in resumed
    assert well(applied("resume", "hand")) == "definition hand is active, without a schedule\n"
    assert well(applied("run-now", "nightly")) == "run 1 queued\n"
    assert well(applied("run-now", "nightly")) == (
        "run 1 holds the natural key: nothing added (`rowcall runs show 1`)\n"
    )
    found = json.loads(well(applied("run-now", "nightly", "--json")))
    assert (found["id"], found["definition"], found["status"]) == (1, "nightly", "queued")
    assert json.loads(well(applied("run-now", "hand", "--json")))["definition"] == "hand"
    assert json.loads(well(applied("pause", "hand", "--json")))["paused_at"] is not None
    assert json.loads(well(applied("resume", "hand", "--json")))["paused_at"] is None
    assert well(applied("remove", "nightly")) == "definition nightly is removed\n"
    assert json.loads(well(applied("remove", "hand", "--json")))["name"] == "hand"
    for steering in ("show", "pause", "resume", "run-now", "remove", "preview"):
        gone = applied(steering, "nightly")
        assert (gone.code, gone.stdout) == (1, "")
        assert gone.stderr.startswith("rowcall: there is no definition 'nightly'; ")


def test_pausing_what_is_paused_and_resuming_what_is_active_are_not_audited(
    environment: dict[str, str], fresh_url: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    assert rowcall(here, "definitions", "apply").returncode == 0
    for command in ("resume", "pause", "pause", "resume", "resume"):
        assert rowcall(here, "definitions", command, "prune_runs").returncode == 0
    for action in ("pause", "resume"):
        audited = json.loads(rowcall(here, "audit", "--action", action, "--json").stdout)
        assert len(audited) == 1, audited


def test_a_misspelt_name_is_answered_with_the_nearest_one(environment: dict[str, str], fresh_url: str) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    assert rowcall(here, "definitions", "apply").returncode == 0
    for command in ("show", "pause", "preview"):
        near = rowcall(here, "definitions", command, "prune_run")
        assert near.stderr.endswith("shows all definitions; did you mean 'prune_runs'?\n")


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run-now", "remove"])
def test_a_definition_that_only_the_code_has_is_missed_with_the_command_that_applies_it(say: Say, command: str) -> None:
    missed = say(command, "prune_runs")
    assert (missed.code, missed.stdout) == (1, "")
    assert missed.stderr == (
        "rowcall: the code declares 'prune_runs', but the database does not have it:"
        " `rowcall definitions apply` creates it\n"
    )
