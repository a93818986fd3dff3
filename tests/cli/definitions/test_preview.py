"""`rowcall definitions preview`: the next times of a definition, or of an expression that is not stored."""

from __future__ import annotations

import json

import pytest

from tests.cli.definitions.saying import Say, cells, well
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.usefixtures("example_app")


# Preview


def test_the_next_times_of_a_definition_are_shown_with_what_is_special_about_them(applied: Say) -> None:
    rules, more, empty, heading, *rows = well(
        applied("preview", "nightly", "--at", "2026-03-28", "--count", "3")
    ).split("\n")[:-1]
    assert rules == "30 2 * * * in Europe/Berlin"
    assert more == "catch_up latest, max_lateness 6 h, overlap skip, jitter 1 min 30 s"
    assert (empty, heading.split()) == ("", ["wall", "nominal_at", "run_at", "outcome", "note"])
    assert [row.split("  ")[0] for row in rows] == [
        "Sat 2026-03-28 02:30 CET",
        "Sun 2026-03-29 03:00 CEST",
        "Mon 2026-03-30 02:30 CEST",
    ]
    assert "02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00" in rows[1]


@pytest.mark.parametrize("columns", [60, 100])
def test_a_narrow_terminal_shows_when_it_runs_and_what_is_special_about_it(
    environment: dict[str, str], columns: int
) -> None:
    tried = ["--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin", "--at", "2026-10-24", "--count", "3"]
    shown = on_terminal(environment, "definitions", "preview", *tried, columns=columns)
    assert shown[3].split() == ["wall", "nominal_at", "outcome", "note"]
    assert [line[:43] for line in shown[4:] if not line.startswith(" ")] == [
        "Sat 2026-10-24 02:30 CEST  2026-10-24 00:30",
        "Sun 2026-10-25 02:30 CEST  2026-10-25 00:30",
        "Mon 2026-10-26 02:30 CET   2026-10-26 01:30",
    ]
    words = " ".join(" ".join(shown).split())
    assert " enqueued 02:30 " in words
    assert " twice on 2026-10-25 in Europe/Berlin: " in words
    late = on_terminal(environment, "definitions", "preview", *tried, "--jitter", "1h", columns=columns)
    assert "run_at" in late[3]
    wide = on_terminal(environment, "definitions", "preview", *tried, "--wide", columns=columns)
    assert "2026-10-24 00:30:00+00:00" in "".join(wide)


def test_programs_get_the_same(applied: Say) -> None:
    [shown] = json.loads(well(applied("preview", "hourly", "--at", "2026-03-28 09:30", "--count", "1", "--json")))
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
    options = ("--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin")
    tried = json.loads(well(say("preview", *options, "--at", "2026-10-25", "--count", "2", "--json")))
    assert [one["wall"] for one in tried] == [
        "Sun 2026-10-25 02:30 CEST",
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


@pytest.mark.parametrize("end", [(), ("--until", "2026-03-31")], ids=["next", "until"])
def test_the_times_of_a_paused_definition_are_skipped_until_it_is_resumed(applied: Say, end: tuple[str, ...]) -> None:
    well(applied("pause", "nightly"))
    asked = ("preview", "nightly", "--at", "2026-03-29", *end)
    first, *_ = json.loads(well(applied(*asked, "--json")))
    told = "02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00; paused"
    assert (first["outcome"], first["run_at"], first["note"]) == ("skipped", None, told)
    assert "\npaused: its times are skipped until `rowcall definitions resume nightly`\n" in well(applied(*asked))
    well(applied("resume", "nightly"))
    resumed = well(applied(*asked))
    assert (" enqueued " in resumed, "paused" in resumed) == (True, False)


def test_a_paused_definition_is_skipped_among_all_and_after_an_outage(applied: Say) -> None:
    well(applied("pause", "hourly"))
    for end in ("--until", "--asleep"):
        told = json.loads(well(applied("preview", "--at", "2026-03-29 00:00Z", end, "2026-03-29 01:10Z", "--json")))
        assert {(one["name"], one["outcome"]) for one in told} == {("hourly", "skipped"), ("nightly", "enqueued")}


def test_what_has_no_schedule_has_no_times(applied: Say) -> None:
    for arguments in ([], ["--until", "tomorrow"], ["--asleep", "tomorrow"]):
        assert well(applied("preview", "hand", *arguments)) == (
            "it has no schedule: it runs only on `rowcall definitions run-now`\n"
        )


@pytest.mark.parametrize("columns", [100, 60, 40])
def test_a_note_is_wrapped_at_spaces(environment: dict[str, str], columns: int) -> None:
    asked = ["--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin", "--at", "2026-03-28T23:00", "--count", "1"]
    lines = on_terminal(environment, "definitions", "preview", *asked, columns=columns)
    assert max(map(len, lines)) <= columns
    words = " ".join(" ".join(lines).split())
    assert "2026-03-29 01:00Z enqueued 02:30 does not exist on 2026-03-29 in Europe/Berlin: runs at 03:00" in words
    if columns == 100:
        assert lines[-1].strip() == "Europe/Berlin: runs at 03:00"
        assert lines[-1].index("Europe") == lines[-2].index("02:30 does")


def test_a_table_that_is_cut_says_so(say: Say) -> None:
    shown = well(say("preview", "--schedule", "* * * * *", "--until", "in 3 days"))
    assert shown.endswith("\nthese are the first 1000: continue with --at\n")


@pytest.mark.parametrize(
    ("until", "count", "rows", "last"),
    [
        ("2026-03-31T00:00Z", None, 50, "these are the first 50 of 1000 or more: --count shows more"),
        ("2026-03-28T01:30Z", None, 50, "these are the first 50 of 90: --count shows more"),
        ("2026-03-28T01:30Z", "60", 60, ""),
        ("2026-03-28T00:09Z", None, 9, ""),
    ],
)
def test_a_terminal_is_not_filled_with_times(
    environment: dict[str, str], until: str, count: str | None, rows: int, last: str
) -> None:
    asked = ["--schedule", "* * * * *", "--at", "2026-03-28T00:00Z", "--until", until]
    shown = on_terminal(environment, "definitions", "preview", *asked, *(["--count", count] if count else []))
    assert len([line for line in shown if line.startswith("Sat ")]) == rows
    assert shown[-1].startswith(last or "Sat ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["preview"], "specify NAME or --schedule, or --until for all definitions"),
        (["preview", "--jitter", "5m"], "--jitter needs NAME or --schedule"),
        (["preview", "hourly", "--until", "tomorrow", "--asleep", "tomorrow"], "use --until or --asleep, not both"),
        (["preview", "hourly", "--until", "yesterday"], "is not after --at, "),
        (["preview", "hourly", "--at", "tomorrow", "--asleep", "today"], "--asleep, "),
        (["preview", "hourly", "--at", "soon"], "--at: 'soon' is not a time: write 'now', "),
        (["preview", "hourly", "--until", ""], "--until: '' is not a time"),
        (["preview", "hourly", "--at", "99999-01-01"], "--at: '99999-01-01' is not a time"),
        (["preview", "hourly", "--count", "0"], "0 is not in the range 1<=x<=1000"),
        (["preview", "hourly", "--catch-up", "some"], "'some' is not one of 'skip', 'latest', 'all'"),
        (
            ["preview", "hourly", "--jitter", "x", "--time-zone", "Berlin"],
            "--time-zone: there is no time zone 'Berlin'",
        ),
        (["preview", "hourly", "--jitter", "x", "--time-zone", "Berlin"], "--jitter: 'x' is not a duration"),
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


def test_a_definition_that_only_the_code_has_is_previewed_from_its_declaration(say: Say) -> None:
    shown = say("preview", "prune_runs", "--count", "1", "--json")
    assert (shown.code, [one["name"] for one in json.loads(shown.stdout)]) == (0, ["prune_runs"])
    assert shown.stderr == (
        "the code declares 'prune_runs', but the database does not have it: `rowcall definitions apply` creates it\n"
    )
    tried = json.loads(say("preview", "prune_runs", "--schedule", "0 9 * * *", "--count", "1", "--json").stdout)
    assert tried[0]["wall"].endswith(" 09:00 UTC")
    assert json.loads(well(say("list", "--json"))) == []
