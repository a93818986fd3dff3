"""`rowcall definitions`: a nominal time that has come and that nobody decides is said, and not left to be noticed."""

from __future__ import annotations

import json

import pytest

from rowcall.base import database
from tests.cli.definitions.saying import Say, cells, well
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.usefixtures("example_app")

NEVER = "no worker has ever ticked"


def passed(url: str, minutes: int, ticked: str | None = None) -> None:
    """Let the next nominal time of `hourly` have come so many minutes ago, and a worker have ticked at this time."""
    with database.transaction(url) as connection:
        database.fetch_all(
            connection,
            "UPDATE rowcall.job_definitions SET next_run_at = now() - %(minutes)s * interval '1 minute'"
            " WHERE name = 'hourly'",
            {"minutes": minutes},
        )
        if ticked is not None:
            database.fetch_all(
                connection,
                f"UPDATE rowcall.schedule_ticks SET worker = 'cron', ticked_at = now() - interval '{ticked}'",
            )


def problems(say: Say) -> dict[str, str | None]:
    return {one["name"]: one["problem"] for one in json.loads(well(say("list", "--json")))}


def test_a_time_that_has_come_is_not_one_that_is_still_to_come(applied: Say, fresh_url: str) -> None:
    passed(fresh_url, minutes=1)
    told = well(applied("show", "hourly")).splitlines()[-1]
    assert told.startswith("20")
    assert told.endswith(f" is due and not yet processed: {NEVER}")
    passed(fresh_url, minutes=1, ticked="2 hours")
    assert " is due and not yet processed: no worker has ticked since 20" in well(applied("show", "hourly"))


def test_list_and_show_call_a_time_overdue_from_the_same_moment(applied: Say, fresh_url: str) -> None:
    for minutes, ticked, because in (
        (1, "2 hours", "no worker has ticked since 20"),
        (1, "140 seconds", None),
        (10, "140 seconds", "workers tick, and none has processed it"),
        (10, "160 seconds", "no worker has ticked since 20"),
    ):
        passed(fresh_url, minutes, ticked)
        listed = problems(applied)["hourly"]
        assert listed is None if because is None else str(listed).startswith(f"overdue: {because}"), (minutes, ticked)
        told = well(applied("show", "hourly"))
        assert (f"problem       overdue: {because}" in told) == (because is not None), told
        assert f" is due and not yet processed: {because or 'the next tick will process it'}" in told


def test_the_list_never_blames_both_cron_and_workers(applied: Say, fresh_url: str) -> None:
    """If no worker ticks now, none could decide a time that came while they still did."""
    passed(fresh_url, minutes=10, ticked="5 minutes")
    assert str(problems(applied)["hourly"]).startswith("overdue: no worker has ticked since 20")


def test_the_list_says_that_cron_has_stopped(applied: Say, fresh_url: str) -> None:
    passed(fresh_url, minutes=10)
    assert problems(applied) == {"hand": None, "hourly": f"overdue: {NEVER}", "nightly": None}
    passed(fresh_url, minutes=10, ticked="2 hours")
    heading, _, hourly, _ = cells(applied("list"))
    assert heading[6] == "problem"
    assert hourly[6].startswith("overdue: no worker has ticked since 20")
    assert "problem" in well(applied("show", "hourly"))


def test_a_narrow_terminal_does_not_cut_a_problem(applied: Say, fresh_url: str, environment: dict[str, str]) -> None:
    passed(fresh_url, minutes=10, ticked="2 hours")
    told = str(problems(applied)["hourly"])
    listed = on_terminal({**environment, "DATABASE_URL": fresh_url}, "definitions", "list", columns=60)
    assert " ".join(listed[4:]) == f"\x1b[31mhourly: {told}\x1b[0m"
    assert max(map(len, listed[:4])) <= 60
    assert [len(line) <= 60 + len("\x1b[31m") for line in listed[4:]] == [True, True]


def test_a_time_that_the_next_tick_decides_is_no_problem(applied: Say, fresh_url: str) -> None:
    passed(fresh_url, minutes=1, ticked="90 seconds")
    assert problems(applied)["hourly"] is None


def test_a_time_that_workers_leave_undecided_is_not_blamed_on_cron(applied: Say, fresh_url: str) -> None:
    passed(fresh_url, minutes=10, ticked="5 seconds")
    assert str(problems(applied)["hourly"]).startswith("overdue: workers tick, and none has processed it: ")


def test_a_paused_definition_shows_no_time_at_which_it_will_not_run(
    applied: Say, fresh_url: str, environment: dict[str, str]
) -> None:
    well(applied("pause", "hourly"))
    passed(fresh_url, minutes=10)
    assert [row[4] for row in cells(applied("list"))] == ["next_run_at", "-", "paused", cells(applied("list"))[3][4]]
    assert problems(applied)["hourly"] is None
    narrow = on_terminal({**environment, "DATABASE_URL": fresh_url}, "definitions", "list", columns=80)
    assert "…" not in narrow[-1].split("  ")[4]
