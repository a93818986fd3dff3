"""`rowcall alerts`, and what doctor says of alerts and of the dead man's switch."""

from __future__ import annotations

import json

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.status import Status
from tests.support.doctor import well_kept
from tests.support.processes import rowcall
from tests.support.rows import run_in

INCIDENT = """
INSERT INTO rowcall.incidents (alert, subject, details, seen_at, opened_at, ended_at)
VALUES ('run_died', 'noop', '{"runs": 3, "run_ids": [1]}', now(), now() - interval '2 h', NULL),
    ('effect_unknown', 'sms', '{"effects": 1}', now(), now() - interval '1 h', now())
"""


@pytest.fixture
def well(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    return well_kept({**environment, "DATABASE_URL": fresh_url})


def found(environment: dict[str, str], subject: str) -> list[tuple[bool, str]]:
    """Return what doctor finds about this subject."""
    examined = json.loads(rowcall(environment, "doctor", "--json").stdout)
    return [(one["good"], one["message"]) for one in examined["findings"] if one["subject"] == subject]


def test_a_list_without_incidents_says_when_there_would_be_some(well: dict[str, str]) -> None:
    listed = rowcall(well, "alerts", "list")
    assert listed.stdout == (
        "no incident has been recorded; workers check alerts only if they have receivers (`rowcall doctor`)\n"
    )
    assert rowcall(well, "alerts", "list", "--json").stdout == "[]\n"


def test_open_incidents_come_first_and_say_what_began(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, INCIDENT)
    listed = rowcall(well, "alerts", "list").stdout
    assert listed.index("3 runs of noop died") < listed.index("1 effect of kind sms may or may not have happened")
    only = rowcall(well, "alerts", "list", "--open").stdout
    assert "noop" in only
    assert "sms" not in only
    [first, _] = json.loads(rowcall(well, "alerts", "list", "--json").stdout)
    assert (first["alert"], first["details"]["runs"], first["ended_at"]) == ("run_died", 3, None)


def test_doctor_says_who_is_told(well: dict[str, str]) -> None:
    [(good, nobody)] = found(well, "alerts")
    assert good
    assert nobody.startswith("no receiver of alerts is set here; workers may have some")
    [(good, told)] = found({**well, "ROWCALL_ALERT_WEBHOOKS": "https://chat.example.com/hooks/a1b2c3"}, "alerts")
    assert good
    assert told.startswith("sent to chat.example.com#")
    assert "a1b2c3" not in told


def test_doctor_finds_alerts_that_go_to_files(well: dict[str, str]) -> None:
    assert found({**well, "ROWCALL_ALERT_EMAILS": "ops@example.com"}, "alerts") == [
        (False, "emails to the receivers of alerts are written to files, not sent: set ROWCALL_SMTP_URL")
    ]


def test_doctor_finds_alerts_that_no_worker_checks(well: dict[str, str], fresh_url: str) -> None:
    told = {**well, "ROWCALL_ALERT_WEBHOOKS": "https://chat.example.com/hooks"}
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = 'w'")
    assert any(
        message.startswith("workers tick, but none has ever checked them") for _, message in found(told, "alerts")
    )
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, "INSERT INTO rowcall.alert_checks VALUES ('', now(), '{}')")
    assert all(good for good, _ in found(told, "alerts"))


def test_doctor_says_whether_a_switch_is_set_and_when_its_last_ping_finished(
    well: dict[str, str], fresh_url: str
) -> None:
    [(good, unset)] = found(well, "dead man's switch")
    assert good
    assert unset.startswith("not set: nobody notices if everything stops working")
    switched = {**well, "ROWCALL_PING_URL": "https://hc-ping.com/0b5c1f7a"}
    [(_, never)] = found(switched, "dead man's switch")
    assert never == "hc-ping.com will be called every minute; no ping has finished yet"
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, "INSERT INTO rowcall.pings (definition_id, finished_at) VALUES (0, now())")
    [(good, lately)] = found(switched, "dead man's switch")
    assert good
    assert lately.startswith("hc-ping.com is called every minute; the last ping finished at 2")
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, "UPDATE rowcall.pings SET finished_at = '2026-01-05 12:00+00'")
    [(good, since)] = found(switched, "dead man's switch")
    assert not good
    assert since.startswith(
        "hc-ping.com is not called: the last ping finished at 2026-01-05 12:00:00+00:00; check that"
    )


def test_doctor_finds_messages_that_are_not_sent_yet_with_the_reason(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        told = {"job_type": "'send_incidents'", "queue": "'maintenance'", "priority": "-32768"}
        run_in(connection, Status.FAILED, **told, last_error="'the mail server wants STARTTLS'")
    [unsent, _] = found(well, "alerts")
    listed = "`rowcall runs list --type send_incidents --status failed` lists them"
    assert unsent == (False, f"1 message is not sent yet: the mail server wants STARTTLS; {listed}")
