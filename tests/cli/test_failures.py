"""`rowcall failures`: what has failed lately, as a table of job type, error and period."""

from __future__ import annotations

import json

import pytest

from rowcall.base import database
from tests.support.failures import failed
from tests.support.processes import rowcall
from tests.support.terminal import on_terminal


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The environment of a `rowcall` process on a database with two errors."""
    with database.transaction(fresh_url) as connection:
        for number, age in enumerate(("1 minute", "2 hours", "3 hours", "3 days")):
            error = f"the mail server refused the address of user {number}: mailbox unavailable"
            failed(connection, error, age, "SMTPRecipientsRefused", job_type="'send_invoice_email'")
        failed(connection, age="1 hour 5 minutes")
    return {**environment, "DATABASE_URL": fresh_url}


def test_the_table_fits_100_columns(environment: dict[str, str]) -> None:
    lines = on_terminal(environment, "failures")
    assert max(map(len, lines)) <= 100
    assert lines[0].split("  ")[0] == "job_type"
    assert lines[1].startswith("send_invoice")
    assert lines[1].split()[2:5] == ["1", "3", "4"]
    assert lines[2].split()[:5] == ["noop", "ValueError", "0", "1", "1"]
    assert "the mail" in lines[1]


def test_a_narrow_terminal_keeps_the_type_the_error_and_the_last_hour(environment: dict[str, str]) -> None:
    lines = on_terminal(environment, "failures", columns=40)
    assert max(map(len, lines)) <= 40
    assert lines[0].split("  ")[:2] == ["job_type", "error_t…"]
    assert "1 h" in lines[0]


def test_json_has_all_fields_and_options_choose(environment: dict[str, str]) -> None:
    [found] = json.loads(rowcall(environment, "failures", "--json", "--type", "send_invoice_email").stdout)
    assert (found["last_hour"], found["last_day"], found["last_week"], found["retrying"]) == (1, 3, 4, 4)
    assert found["error"] == "the mail server refused the address of user * mailbox unavailable"
    assert json.loads(rowcall(environment, "failures", "--json", "--queue", "mail").stdout) == []


def test_the_end_of_a_long_error_is_shown_as_left_out(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        failed(connection, "too long " * 30, job_type="'long'")
        failed(connection, "a" * 200, job_type="'fits'")
    listed = {job_type: rowcall(environment, "failures", "--json", "--type", job_type) for job_type in ("long", "fits")}
    errors = {job_type: json.loads(done.stdout)[0]["error"] for job_type, done in listed.items()}
    assert errors == {"long": ("too long " * 30)[:200] + "…", "fits": "a" * 200}


def test_an_empty_list_says_what_it_means(environment: dict[str, str], fresh_url: str) -> None:
    none = rowcall(environment, "failures", "--type", "x", "--queue", "mail").stdout
    assert none == "no attempt that matches --type x --queue mail has failed in the last 7 days\n"
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "TRUNCATE rowcall.job_attempts")
    assert rowcall(environment, "failures").stdout == "no attempt has failed in the last 7 days\n"
