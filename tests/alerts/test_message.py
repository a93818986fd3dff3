"""Messages: what a receiver reads, and what to do."""

from __future__ import annotations

import json

import pytest

from rowcall.alerts import Alert, compose
from rowcall.alerts.conditions import CONDITIONS
from rowcall.alerts.words import ENDED, OPENED
from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.job_types.alerting import Message
from rowcall_worker.gateways.alerts import chat_text
from tests.alerts.checking import check, die, messages

PAGE = "https://jobs.example.com/admin"

FIGURES = {
    Alert.RUN_DIED: '{"runs": 2, "run_ids": []}',
    Alert.RUN_OVERDUE: '{"run_id": 7, "job_type": "noop", "due_since": "2026-01-05T12:00:00+00:00", "paused": true,'
    ' "closed": false}',
    Alert.TYPE_UNSERVED: '{"waiting": 1, "abandoned": 2, "queues": 12, "first_queues": ["mail", "default"]}',
    Alert.ATTEMPTS_FAILING: '{"failed": 10, "ended": 12}',
    Alert.EFFECT_UNKNOWN: '{"effects": 1}',
    Alert.TICK_SILENT: '{"since": "2026-01-05T12:00:00+00:00"}',
    Alert.TABLE_BLOATED: '{"dead": 60000, "live": 10}',
    Alert.VACUUM_HELD_BACK: '{"since": "2 h", "query_started_at": null, "remedy": "end it"}',
    Alert.TEST: "{}",
}


def begun(connection: PgConnection, alert: Alert, subject: str, over: bool = False) -> int:
    """Insert an incident."""
    found: int = fetch_value(
        connection,
        "INSERT INTO rowcall.incidents (alert, subject, details, seen_at, ended_at)"
        " VALUES (%(alert)s, %(subject)s, %(details)s, now(), CASE WHEN %(over)s THEN now() END) RETURNING id",
        {"alert": alert, "subject": subject, "details": FIGURES[alert], "over": over},
    )
    return found


def message(connection: PgConnection, page: str | None = None) -> Message:
    """Compose the one message that was enqueued."""
    [run] = messages(connection)
    return compose(connection, run["payload"], "production", page)


def test_every_alert_has_words_for_its_beginning_and_its_end() -> None:
    assert {*OPENED} == {*ENDED} == {*CONDITIONS, Alert.TEST} == {*FIGURES}


@pytest.mark.parametrize("alert", Alert)
@pytest.mark.parametrize("change", ["opened", "ended"])
def test_a_message_has_a_subject_of_one_line_and_says_since_when(
    connection: PgConnection, alert: Alert, change: str
) -> None:
    incident = begun(connection, alert, "mail", over=change == "ended")
    told = compose(connection, {"opened": [], "ended": [], change: [incident]}, None, PAGE)
    database = fetch_value(connection, "SELECT current_database()")
    assert told.subject.startswith(f"[Rowcall {database}] {'ended: ' if change == 'ended' else ''}")
    assert "\n" not in told.subject
    assert "None" not in told.text
    assert f"Incident {incident}, since 2" in told.text
    assert json.loads(json.dumps(told.incidents))[0]["state"] == change


def test_a_test_comes_after_what_is_true(connection: PgConnection) -> None:
    incidents = [begun(connection, alert, "mail") for alert in (Alert.TEST, Alert.RUN_DIED)]
    told = compose(connection, {"opened": incidents, "ended": []}, "production", PAGE)
    assert [incident["alert"] for incident in told.incidents] == [Alert.RUN_DIED, Alert.TEST]


@pytest.mark.parametrize("change", ["opened", "ended"])
def test_an_alert_that_only_newer_code_knows_is_named(connection: PgConnection, change: str) -> None:
    insert = "INSERT INTO rowcall.incidents (alert, subject, details) VALUES ('disk_full', 'pg_wal', '{}') RETURNING id"
    incident = fetch_value(connection, insert)
    told = compose(connection, {"opened": [], "ended": [], change: [incident]}, "production", None)
    assert "disk_full of pg_wal" in told.subject


def test_a_dead_run_is_told_with_its_error_its_page_and_the_command_that_retries_it(connection: PgConnection) -> None:
    run = die(connection)
    check(connection)
    told = message(connection, PAGE)
    assert told.subject == "[Rowcall production] 1 run of noop died"
    assert f"Run {run}: LookupError: no such customer\n" in told.text
    assert f"  {PAGE}/runs/{run}\n" in told.text
    assert f"  rowcall runs retry {run}\n" in told.text
    assert "To retry one first" not in told.text


def test_without_an_address_of_the_page_the_message_names_the_command_that_shows_the_run(
    connection: PgConnection,
) -> None:
    run = die(connection)
    check(connection)
    assert f"  rowcall runs show {run}\n" in message(connection).text


def test_of_many_dead_runs_five_are_told_and_the_commands_for_all(connection: PgConnection) -> None:
    runs = [die(connection) for _ in range(6)]
    check(connection)
    told = message(connection)
    assert told.subject == "[Rowcall production] 6 runs of noop died"
    assert all(f"Run {run}: " in told.text for run in runs[1:])
    assert f"Run {runs[0]}: " not in told.text
    assert "rowcall runs list --status dead --type noop" in told.text
    assert "rowcall runs retry --status dead --type noop --canary" in told.text


def test_a_run_that_was_retried_or_erased_before_the_message_is_sent_is_not_told(connection: PgConnection) -> None:
    die(connection)
    check(connection)
    fetch_all(connection, "UPDATE rowcall.job_runs SET status = 'cancelled' WHERE job_type = 'noop'")
    told = message(connection)
    assert "no such customer" not in told.text
    assert told.subject == "[Rowcall production] 1 run of noop died"


def test_the_table_of_incidents_has_no_text_of_an_error(connection: PgConnection) -> None:
    die(connection, error="unknown person anna@example.com")
    check(connection)
    kept = fetch_value(connection, "SELECT string_agg(incidents::text, ' ') FROM rowcall.incidents")
    payloads = str([run["payload"] for run in messages(connection)])
    assert "anna@example.com" not in f"{kept} {payloads}"


def test_many_incidents_are_one_message_that_spells_out_twenty_of_them(connection: PgConnection) -> None:
    for number in range(23):
        die(connection, f"type_{number:02}")
    check(connection)
    told = message(connection)
    assert told.subject == "[Rowcall production] 1 run of type_00 died, and 22 other alerts"
    assert len(told.incidents) == 20
    assert told.text.endswith("and 3 more: rowcall alerts list\n")


@pytest.mark.parametrize("subject", ["prepared transaction 'a\nb'", "x" * 5000])
def test_a_subject_is_one_short_line_whatever_it_is_about(connection: PgConnection, subject: str) -> None:
    incident = begun(connection, Alert.VACUUM_HELD_BACK, subject)
    told = compose(connection, {"opened": [incident], "ended": []}, "production", None)
    assert told.subject.isprintable()
    assert len(told.subject) <= 200


def test_colours_in_an_error_do_not_keep_the_message_from_being_sent(connection: PgConnection) -> None:
    run = die(connection)
    coloured = {"id": run, "error": "\x1b[31mred\x1b[0m\x07 and \u202e more"}
    fetch_all(connection, "UPDATE rowcall.job_runs SET last_error = %(error)s WHERE id = %(id)s", coloured)
    check(connection)
    told = message(connection)
    assert "LookupError: ?[31mred?[0m? and ? more" in told.text


def test_a_message_that_is_sent_after_its_incident_has_ended_says_so(connection: PgConnection) -> None:
    incident = begun(connection, Alert.RUN_OVERDUE, "mail", over=True)
    told = compose(connection, {"opened": [incident], "ended": []}, "production", None)
    assert told.subject == "[Rowcall production] due runs of queue mail are not starting; this has already ended"
    assert "rowcall queues resume" not in told.text


def test_a_chat_shows_the_text_and_calls_nobody() -> None:
    shown = chat_text("<!channel> <https://evil.example|retry> @here a & b, ops@example.com")
    assert shown == (
        "&lt;!channel&gt; &lt;https://evil.example|retry&gt; @\N{ZERO WIDTH SPACE}here a &amp; b, ops@example.com"
    )


def test_what_has_begun_comes_before_what_is_over(connection: PgConnection) -> None:
    over, new = begun(connection, Alert.TEST, "cli:anna", over=True), begun(connection, Alert.RUN_OVERDUE, "mail")
    told = compose(connection, {"opened": [new], "ended": [over]}, "production", None)
    assert told.subject == "[Rowcall production] due runs of queue mail are not starting, and 1 other alert"
    assert told.text.index("queue mail") < told.text.index("ended: a test")
