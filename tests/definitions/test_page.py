"""docs/schedules.md: the code accepts each example, and each table shows what the code computes."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import flask
import pytest

from rowcall.access import api_keys
from rowcall.base import database, logs
from rowcall.base.settings import Settings
from rowcall.cli import main
from rowcall.definitions import Content, apply_code, apply_file, as_sent, checked, preview
from rowcall.definitions.content import SENT
from rowcall.definitions.file import read_file
from rowcall.definitions.tick import PUNCTUAL
from rowcall.job_types import Catalogue
from rowcall.queue.workers import SILENCE_SECONDS
from rowcall.schedule import Times, rendered, zone_named
from rowcall_api.app import create_app
from tests.definitions.making import CATALOGUE, OPERATOR, kept
from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "schedules.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BERLIN = zone_named("Europe/Berlin")


def blocks(language: str) -> list[str]:
    """Return the page's examples in this language."""
    found = [text for name, text in BLOCKS if name == language]
    assert found
    return found


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table below this heading, without its header."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert len(lines) > 3, heading
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    """Return the text in backticks."""
    return re.findall("`([^`]+)`", cell)


def test_there_is_no_example_that_nothing_here_tries() -> None:
    assert {language for language, _ in BLOCKS} == {"toml", "yaml", "sh", "python", "json"}


# The three ways to make a definition


def written(folder: Path, language: str) -> Path:
    """Write the page's file of definitions, under the name in its first line."""
    [text] = blocks(language)
    named = re.match(r"# (\w+\.\w+)", text)
    assert named is not None
    (folder / named[1]).write_text(text)
    return folder / named[1]


def test_the_files_say_the_same_and_are_accepted(connection: database.PgConnection, tmp_path: Path) -> None:
    toml, yaml = written(tmp_path, "toml"), written(tmp_path, "yaml")
    assert read_file(toml) == read_file(yaml)
    assert {one.change for one in apply_file(connection, toml, CATALOGUE, OPERATOR)} == {"created"}


def test_the_readmes_example_is_accepted(tmp_path: Path) -> None:
    [text] = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "readme.toml").write_text(text)
    for name, fields in read_file(tmp_path / "readme.toml").items():
        assert checked(name, fields, CATALOGUE)


def test_the_code_is_accepted(
    connection: database.PgConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [text] = blocks("python")
    (tmp_path / "of_the_page.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    [made] = apply_code(connection, Catalogue(importlib.import_module("of_the_page")), OPERATOR)
    assert (made.name, made.change) == ("monthly-stocktake", "created")


def commands(program: str) -> list[list[str]]:
    """Return the page's commands of this program, split as by a shell."""
    text = "\n".join(blocks("sh")).replace("\\\n", " ")
    lines = [shlex.split(line) for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} == {"rowcall", "curl"}
    return [line[1:] for line in lines if line[0] == program]


def test_the_commands_do_what_they_are_told(
    fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "toml")
    monkeypatch.setenv("DATABASE_URL", fresh_url)
    monkeypatch.chdir(tmp_path)
    of_the_page = commands("rowcall")
    for arguments in of_the_page:
        monkeypatch.setattr(sys, "argv", ["rowcall", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert ended.value.code in (0, None), capsys.readouterr().err
    assert len(of_the_page) > 10


@pytest.fixture
def app(fresh_url: str) -> Iterator[flask.Flask]:
    """Yield the API of a database for this test."""
    app = create_app(fresh_url)
    yield app
    app.extensions["database"].dispose()
    logs.use(logs.Log())


def test_the_requests_are_answered(app: flask.Flask, fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        key = api_keys.create_key(connection, "page", ["operate", "enqueue", "read"], OPERATOR)
    statuses = []
    for arguments in commands("curl"):
        [url] = [argument for argument in arguments if argument.startswith("http://127.0.0.1:8000/")]
        options = dict(itertools.pairwise(arguments))
        headers = [arguments[place + 1].split(": ", 1) for place, one in enumerate(arguments) if one == "-H"]
        answer = app.test_client().open(
            url.removeprefix("http://127.0.0.1:8000"),
            method=options.get("-X", "GET"),
            headers=[(name, value.replace("$KEY", key)) for name, value in headers],
            data=options.get("-d"),
        )
        found = json.loads(answer.data)
        statuses.append((answer.status_code, len(found.get("items", found))))
    assert statuses == [(201, len(SENT) + 8), (200, 3)]


# Tables


def test_all_fields_are_told_with_their_defaults() -> None:
    defaults = as_sent(checked("nightly", {"job_type": "noop"}, CATALOGUE))
    rows = table("Fields")
    assert [quoted(name)[0] for name, *_ in rows] == list(SENT)
    for name, default, _ in rows[1:]:
        assert json.loads(quoted(default)[0]) == defaults[quoted(name)[0]]


def test_expressions_come_when_the_page_says() -> None:
    for expressions, when, first in table("Expressions"):
        for expression in quoted(expressions):
            times = Times.of(expression, "UTC")
            found = times.next_after(datetime(2026, 1, 1, tzinfo=UTC))
            assert found is not None
            assert f"{found:%a %Y-%m-%d %H:%M}" == quoted(first)[0], expression
            if expression.startswith("@"):
                assert times.expression.cron == quoted(when)[0]


def test_what_the_page_says_is_refused_is_refused() -> None:
    [sentence] = re.findall(r"^Expressions that never match.*refused", PAGE, re.MULTILINE)
    for refused in ("0 0 31 2 *", "@reboot", "0 0 ? * *", "0 0 0 * * *"):
        with pytest.raises(Exception, match=r"never occurs|not supported"):
            Times.of(refused, "UTC")
    assert quoted(sentence) == ["0 0 31 2 *", "?", "@reboot"]


def test_placeholders_become_what_the_page_says() -> None:
    nominal = datetime(2026, 3, 30, 2, 30, tzinfo=BERLIN)
    assert "Monday 2026-03-30 02:30 in Europe/Berlin" in " ".join(PAGE.split())
    for placeholder, becomes in table("Payloads that name the time"):
        assert rendered({"a": quoted(placeholder)[0]}, nominal, BERLIN) == {"a": quoted(becomes)[0]}


def settings_of(cell: str) -> dict[str, Any]:
    """Parse settings as the page writes them, in TOML."""
    return tomllib.loads("\n".join(quoted(cell)))


def content(**fields: Any) -> Content:
    return checked("nightly", {"job_type": "noop", **fields}, CATALOGUE)


def test_clocks_change_as_the_page_says() -> None:
    rows = table("When clocks change")
    assert {row[0] for row in rows} == {"2026-03-29", "2026-10-25"}
    for date, schedule, runs in rows:
        times = content(schedule=quoted(schedule)[0], time_zone="Europe/Berlin").times()
        assert times is not None
        start = datetime.fromisoformat(date).replace(tzinfo=BERLIN)
        shown = times.between(start - timedelta(seconds=1), start.replace(hour=4))
        assert [f"{time.astimezone(BERLIN):%H:%M %Z}" for time in shown] == quoted(runs), (date, schedule)


def test_an_outage_leaves_what_the_page_says() -> None:
    asleep, awake = datetime(2026, 3, 28, 2, 10, tzinfo=UTC), datetime(2026, 3, 28, 8, 10, tzinfo=UTC)
    assert re.search(r"from\s02:10\sto\s08:10,\s[^.]*`0 \* \* \* \*`", PAGE)
    for settings, *outcomes in table("After an outage"):
        chosen = preview.Previewed("hourly", content(schedule="0 * * * *", **settings_of(settings)))
        assert [one.outcome for one in preview.through_outage([chosen], asleep, awake)] == outcomes, settings


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert (PUNCTUAL.total_seconds(), SILENCE_SECONDS) == (120, 150)
    assert f"`ROWCALL_TICK_BOUND` ({Settings().tick_bound})" in PAGE


def test_a_silent_cron_shows_as_the_page_says(app: flask.Flask, fresh_url: str) -> None:
    [text] = blocks("json")
    since = json.loads(text)["since"]
    with database.transaction(fresh_url) as connection:
        kept(connection)
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = %(since)s", {"since": since})
    assert app.test_client().get("/readyz").json == json.loads(text)
