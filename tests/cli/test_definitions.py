"""`rowcall definitions`: what should exist, seen, applied, steered and tried out; and a run that came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from rowcall.cli import main
from tests.definitions.making import overdue
from tests.support.processes import rowcall
from tests.support.shop import Shop

pytestmark = pytest.mark.usefixtures("example_app")

TOML = """
[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "30 2 * * *"
time_zone = "Europe/Berlin"
payload = { day = "{date-1}" }
max_lateness = "6h"
jitter = 90

[definitions.hourly]
job_type = "noop"
schedule = "0 * * * *"

[definitions.hand]
job_type = "noop"
"""


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


Say = Callable[..., Said]


@pytest.fixture
def say(fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """`rowcall definitions` on a database of this test's own, in this process: a new one each time would be slow."""
    monkeypatch.setenv("DATABASE_URL", fresh_url)
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["rowcall", "definitions", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        return Said(int(ended.value.code or 0), *capsys.readouterr())

    return said


@pytest.fixture
def applied(say: Say, tmp_path: Path) -> Say:
    """The same, where a file has been applied."""
    (tmp_path / "jobs.toml").write_text(TOML)
    assert say("apply", "jobs.toml").code == 0
    return say


def well(said: Said) -> str:
    """What a command said that did what it was told."""
    assert (said.code, said.stderr) == (0, "")
    return said.stdout


def cells(said: Said) -> list[list[str]]:
    """A table, heading and rows; columns are two spaces apart."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in well(said).splitlines()]


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
        "rowcall: there is no definition 'none'; `rowcall definitions list` shows those that are\n",
    )
    unread = rowcall(environment, "definitions", "apply", str(tmp_path / "none.toml"))
    assert (unread.returncode, unread.stderr) == (
        1,
        f"rowcall: {tmp_path}/none.toml: cannot be read: No such file or directory\n",
    )
    assert rowcall(environment, "definitions", "preview", "--schedule", "* *").returncode == 2


# List and show.


def test_a_table_shows_each_definition_with_what_is_due_by_its_own_clock(applied: Say) -> None:
    heading, *rows = cells(applied("list"))
    assert heading == [
        *("name", "job_type", "schedule", "time_zone", "next_run_at", "paused_at", "revision", "managed_by")
    ]
    assert [row[:4] for row in rows] == [
        ["hand", "noop", "-", "UTC"],
        ["hourly", "noop", "0 * * * *", "UTC"],
        ["nightly", "cleanup_nightly", "30 2 * * *", "Europe/Berlin"],
    ]
    assert rows[0][4:] == ["-", "-", "1", "file"]
    assert " 02:30:00+0" in rows[2][4]


def test_programs_get_the_content_as_it_can_be_sent_again_and_the_state(applied: Say) -> None:
    hand, hourly, nightly = json.loads(well(applied("list", "--json")))
    assert (hand["schedule"], hand["next_run_at"], hourly["name"]) == (None, None, "hourly")
    assert (nightly["max_lateness"], nightly["jitter"], nightly["payload"]) == (21600.0, 90.0, {"day": "{date-1}"})
    assert set(nightly) >= {"revision", "next_run_at", "paused_at", "managed_by", "created_at", "updated_at"}
    assert json.loads(well(applied("show", "nightly", "--json"))) == {**nightly, "occurrences": []}


def test_people_read_durations_in_words_and_what_became_of_the_latest_times(applied: Say, fresh_url: str) -> None:
    fields = dict(line.split(maxsplit=1) for line in well(applied("show", "nightly")).splitlines()[:-2])
    assert (fields["max_lateness"], fields["jitter"], fields["payload"]) == ("6 h", "1 min 30 s", '{"day": "{date-1}"}')
    assert well(applied("show", "nightly")).endswith("\n\nnone of its nominal times has come yet\n")
    assert well(applied("show", "hand")).endswith("\n\nit has no schedule: `rowcall definitions run-now` runs it\n")
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
    assert well(say("list")) == "there are no definitions; `rowcall definitions apply FILE` makes some\n"
    assert well(say("list", "--json")) == "[]\n"
    (tmp_path / "empty.toml").write_text("[definitions]")
    assert well(say("apply", "empty.toml")) == "empty.toml has no definitions\n"
    assert well(say("preview", "--until", "tomorrow")) == "nothing would run\n"
    assert say("show", "--occurrences", "x", "a").code == 2


# Apply.


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
        "missing_time": "after",
        "repeated_time": "once",
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


# Steer.


def test_a_definition_is_paused_resumed_run_and_removed(applied: Say) -> None:
    assert well(applied("pause", "nightly")).startswith("definition nightly is paused since 20")
    assert cells(applied("list"))[3][5].startswith("20")
    resumed = well(applied("resume", "nightly"))
    assert resumed.startswith("definition nightly is open, due next 20")
    assert " 02:30:00+0" in resumed
    assert well(applied("resume", "hand")) == "definition hand is open, without a schedule\n"
    assert well(applied("run-now", "nightly")) == "run 1 queued\n"
    assert well(applied("run-now", "nightly")) == (
        "run 1 has its key already: nothing added (`rowcall runs clone` does it again)\n"
    )
    assert json.loads(well(applied("run-now", "nightly", "--json"))) == {"run_id": 1, "replayed": True}
    assert json.loads(well(applied("run-now", "hand", "--json")))["replayed"] is False
    assert json.loads(well(applied("pause", "hand", "--json")))["paused_at"] is not None
    assert json.loads(well(applied("resume", "hand", "--json")))["paused_at"] is None
    assert well(applied("remove", "nightly")) == "definition nightly is removed\n"
    assert json.loads(well(applied("remove", "hand", "--json")))["name"] == "hand"
    for steering in ("show", "pause", "resume", "run-now", "remove", "preview"):
        gone = applied(steering, "nightly")
        assert (gone.code, gone.stdout) == (1, "")
        assert gone.stderr.startswith("rowcall: there is no definition 'nightly'; ")


# Preview.


def test_the_next_times_of_a_definition_are_shown_with_what_is_special_about_them(applied: Say) -> None:
    rules, more, empty, heading, *rows = well(
        applied("preview", "nightly", "--at", "2026-03-28", "--count", "3")
    ).split("\n")[:-1]
    assert rules == "30 2 * * * in Europe/Berlin"
    assert more == (
        "catch_up latest, max_lateness 6 h, overlap skip, jitter 1 min 30 s, missing_time after, repeated_time once"
    )
    assert (empty, heading.split()) == ("", ["wall", "nominal_at", "run_at", "outcome", "note"])
    assert [row.split("  ")[0] for row in rows] == [
        "Sat 2026-03-28 02:30 CET",
        "Sun 2026-03-29 03:00 CEST",
        "Mon 2026-03-30 02:30 CEST",
    ]
    assert "02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00" in rows[1]


def test_programs_get_the_same(applied: Say) -> None:
    [shown] = json.loads(well(applied("preview", "hourly", "--from", "2026-03-28 09:30", "--count", "1", "--json")))
    assert shown == {
        "name": "hourly",
        "nominal_at": "2026-03-28T10:00:00+00:00",
        "wall": "Sat 2026-03-28 10:00 UTC",
        "outcome": "enqueued",
        "run_at": "2026-03-28T10:00:00+00:00",
        "note": None,
    }


def test_rules_can_be_tried_on_a_saved_definition_and_nothing_is_saved(applied: Say) -> None:
    tried = applied("preview", "nightly", "--schedule", "0 9 * * MON", "--jitter", "0", "--at", "2026-03-28", "--json")
    assert [one["wall"][:20] for one in json.loads(well(tried))][:2] == ["Mon 2026-03-30 09:00", "Mon 2026-04-06 09:00"]
    assert json.loads(well(applied("show", "nightly", "--json")))["schedule"] == "30 2 * * *"


def test_an_expression_can_be_tried_before_anything_is_saved(say: Say) -> None:
    options = ("--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin", "--repeated-time", "twice")
    tried = json.loads(well(say("preview", *options, "--at", "2026-10-25", "--count", "3", "--json")))
    assert [one["wall"] for one in tried] == [
        "Sun 2026-10-25 02:30 CEST",
        "Sun 2026-10-25 02:30 CET",
        "Mon 2026-10-26 02:30 CET",
    ]
    assert well(say("preview", "--schedule", "@daily", "--count", "1")).startswith("@daily in UTC\n")


def test_up_to_a_moment_the_times_of_all_definitions_are_shown_in_order(applied: Say) -> None:
    heading, *rows = cells(applied("preview", "--at", "2026-03-29 00:00", "--until", "2026-03-29 02:00"))
    assert heading[:2] == ["name", "wall"]
    assert [row[:2] for row in rows] == [
        ["hourly", "Sun 2026-03-29 01:00 UTC"],
        ["nightly", "Sun 2026-03-29 03:00 CEST"],
        ["hourly", "Sun 2026-03-29 02:00 UTC"],
    ]
    alone = cells(applied("preview", "hourly", "--at", "2026-03-29 00:00", "--until", "2026-03-29 02:00"))
    assert [row[0] for row in alone[-2:]] == ["Sun 2026-03-29 01:00 UTC", "Sun 2026-03-29 02:00 UTC"]


def test_what_an_outage_would_leave_is_shown(applied: Say) -> None:
    outage = ("--at", "2026-03-29 23:00", "--asleep", "2026-03-30 04:10")
    told = json.loads(well(applied("preview", *outage, "--json")))
    assert [(one["name"], one["nominal_at"][11:16], one["outcome"]) for one in told] == [
        ("hourly", "00:00", "missed"),
        ("nightly", "00:30", "enqueued"),
        ("hourly", "01:00", "missed"),
        ("hourly", "02:00", "missed"),
        ("hourly", "03:00", "missed"),
        ("hourly", "04:00", "enqueued"),
    ]
    everything = json.loads(well(applied("preview", "hourly", "--catch-up", "all", *outage, "--json")))
    assert {one["outcome"] for one in everything} == {"enqueued", "skipped"}
    everything = json.loads(
        well(applied("preview", "hourly", "--catch-up", "all", "--overlap", "allow", *outage, "--json"))
    )
    assert [one["note"] for one in everything][:1] == ["4 h 10 min late"]
    assert {one["outcome"] for one in everything} == {"enqueued"}


def test_what_has_no_schedule_has_no_times(applied: Say) -> None:
    for arguments in ([], ["--until", "tomorrow"], ["--asleep", "tomorrow"]):
        assert well(applied("preview", "hand", *arguments)) == (
            "it has no schedule: nothing but `rowcall definitions run-now` runs it\n"
        )


def test_a_table_that_is_cut_says_so(say: Say) -> None:
    shown = well(say("preview", "--schedule", "* * * * *", "--until", "in 3 days"))
    assert shown.endswith("\nthese are the first 1000: go on with --at\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["preview"], "say NAME or --schedule; all definitions together need an end, with --until"),
        (["preview", "--jitter", "5m"], "--jitter needs NAME or --schedule"),
        (["preview", "hourly", "--until", "tomorrow", "--asleep", "tomorrow"], "say --until or --asleep, not both"),
        (["preview", "hourly", "--until", "yesterday"], "is not after --at, "),
        (["preview", "hourly", "--at", "tomorrow", "--asleep", "today"], "--asleep, "),
        (["preview", "hourly", "--at", "soon"], "--at: 'soon' is no time that can be read: write 'now', "),
        (["preview", "hourly", "--until", ""], "--until: '' is no time that can be read"),
        (["preview", "hourly", "--at", "99999-01-01"], "--at: '99999-01-01' is no time that can be read"),
        (["preview", "hourly", "--count", "0"], "0 is not in the range 1<=x<=1000"),
        (["preview", "hourly", "--catch-up", "some"], "'some' is not one of 'skip', 'latest', 'all'"),
        (
            ["preview", "hourly", "--jitter", "x", "--time-zone", "Berlin"],
            "--time-zone: there is no time zone 'Berlin'",
        ),
        (["preview", "hourly", "--jitter", "x", "--time-zone", "Berlin"], "--jitter: 'x' is no duration"),
        (["preview", "--schedule", "0 25 * * *"], "--schedule: hour '25' is out of range"),
        (["preview", "--schedule", ""], "--schedule: the schedule is empty"),
        (["show"], "Missing argument 'NAME'"),
    ],
    ids=str,
)
def test_wrong_words_are_a_usage_error_that_names_the_option(
    applied: Say, arguments: list[str], complaint: str
) -> None:
    refused = applied(*arguments)
    assert (refused.code, refused.stdout) == (2, "")
    assert complaint in refused.stderr
