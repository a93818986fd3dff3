"""`rowcall erase`: the content of a person's runs is gone everywhere; their keys still prevent repeated work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import Row, fetch_all
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.rows import run_in

MAIL = "ada@example.com"


@pytest.fixture
def environment(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    """Return an environment with a database for the test."""
    return {**environment, "DATABASE_URL": fresh_url}


def sql(environment: dict[str, str], statement: str) -> list[Row]:
    with database.transaction(environment["DATABASE_URL"]) as connection:
        return fetch_all(connection, statement)


def runs_of(environment: dict[str, str], **columns: str) -> list[int]:
    """Insert runs of user 7 (one succeeded, one dead) and one of user 8, each with every detail that a run may have."""
    details = dict.fromkeys(("last_error", "last_stack"), f"'{MAIL}'")
    details |= dict.fromkeys(("result", "progress"), f"""'{{"to": "{MAIL}"}}'""") | columns
    with database.transaction(environment["DATABASE_URL"]) as connection:
        payloads = [(Status.SUCCEEDED, 7, "'welcome:7'"), (Status.DEAD, 7, "NULL"), (Status.SUCCEEDED, 8, "NULL")]
        return [
            run_in(connection, status, payload=f"""'{{"user_id": {user}}}'""", natural_key=key, **details)["id"]
            for status, user, key in payloads
        ]


DETAILS = """
INSERT INTO rowcall.sent_emails
    (idempotency_key, run_id, lease_no, content_hash, state, applied_at, recipient, subject, message_id,
    provider_reference)
VALUES ('welcome:7', {run}, 1, '', 'applied', now(), '{mail}', 'Hello Ada', '<1@x>', 'ref-1');
INSERT INTO rowcall.other_effects (kind, key, run_id, lease_no, content_hash, state, refusal)
VALUES ('sms', '7', {run}, 1, '', 'refused', '{mail} is unknown');
INSERT INTO rowcall.job_attempts (run_id, lease_no, attempt, outcome, worker, error)
VALUES ({run}, 1, 1, 'fail', 'w', '{mail}');
INSERT INTO rowcall.run_logs (run_id, line_no, lease_no, lease_line_no, logged_at, level, text)
VALUES ({run}, 1, 1, 1, now(), 'info', 'sent to {mail}');
INSERT INTO rowcall.audit_log (who, action, subject, subject_id, after)
VALUES ('cli:me', 'clone', 'run', {run}, '{{"payload": {{"mail": "{mail}"}}, "priority": 1}}');
INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after)
SELECT 'cli:me', 'resolve', 'effect', id, '{{}}', '{{"run_id": {run}, "refusal": "{mail}"}}' FROM rowcall.other_effects
"""


def everything(environment: dict[str, str]) -> str:
    """Return all rows of all tables as text."""
    tables = sql(environment, "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'rowcall'")
    rows = [sql(environment, f"SELECT to_jsonb(t) AS row FROM rowcall.{table['name']} AS t") for table in tables]
    return json.dumps(rows, default=str)


def erased(environment: dict[str, str], *words: str) -> dict[str, Any]:
    ended = rowcall(environment, "erase", *words, "--yes", "--json")
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def test_nothing_of_a_person_is_left_but_keys_and_references(environment: dict[str, str]) -> None:
    first, dead, other = runs_of(environment)
    sql(
        environment, f"UPDATE rowcall.job_runs SET result = NULL, progress = NULL, last_error = NULL WHERE id = {other}"
    )
    sql(environment, f"UPDATE rowcall.job_runs SET last_stack = NULL WHERE id = {other}")
    sql(environment, DETAILS.format(run=first, mail=MAIL))
    assert everything(environment).count(MAIL) > 8
    told = erased(environment, "--payload", '{"user_id": 7}')
    assert told == {
        "matched": 2,
        "erased": 2,
        "effects": 2,
        "unfinished": [],
        "dry_run": False,
        "definitions_matched": 0,
        "definitions_erased": 0,
        "live_definitions": [],
    }
    left = everything(environment)
    assert (MAIL in left, "Ada" in left, '"user_id": 8' in left, "ref-1" in left) == (False, False, True, True)
    audited = sql(environment, "SELECT action, subject_id, after FROM rowcall.audit_log ORDER BY id")
    assert [row["action"] for row in audited] == ["clone", "resolve", "erase", "erase"]
    assert audited[0]["after"] == {"priority": 1}
    assert {row["subject_id"] for row in audited[2:]} == {first, dead}


def test_the_key_of_an_erased_run_still_keeps_its_work_from_being_done_again(environment: dict[str, str]) -> None:
    asked = ("enqueue", "noop", '{"to": "ada@example.com"}', "--key", "welcome:7", "--json")
    run_id = json.loads(rowcall(environment, *asked).stdout)["run_id"]
    assert rowcall(environment, "runs", "cancel", str(run_id)).returncode == 0
    erased(environment, str(run_id))
    again = json.loads(rowcall(environment, *asked).stdout)
    assert (again["run_id"], again["replayed"]) == (run_id, True)
    refused = rowcall(environment, "runs", "retry", str(run_id))
    assert refused.returncode == 1
    assert "its payload was erased on 20" in refused.stderr


def test_a_dry_run_counts_and_changes_nothing(environment: dict[str, str]) -> None:
    runs_of(environment)
    before = everything(environment)
    told = rowcall(environment, "erase", "--payload", '{"user_id": 7}', "--dry-run").stdout
    assert told == "finished runs that match: 2; definitions: 0; dry run: nothing was erased\n"
    assert everything(environment) == before


def test_a_run_that_has_not_finished_is_named_and_the_others_are_erased(environment: dict[str, str]) -> None:
    first, *_ = runs_of(environment)
    with database.transaction(environment["DATABASE_URL"]) as connection:
        one, two = (run_in(connection, Status.QUEUED, payload="""'{"user_id": 7}'""")["id"] for _ in range(2))
    ended = rowcall(environment, "erase", "--payload", '{"user_id": 7}', "--yes")
    assert (ended.returncode, ended.stdout) == (1, "runs erased: 2; effects erased: 0; definitions erased: 0\n")
    assert ended.stderr == (
        f"rowcall: matching runs that have not finished: 2 (runs {two}, {one}); wait for them, or `rowcall runs cancel"
        f" {two}`\n"
    )
    assert sql(environment, f"SELECT payload FROM rowcall.job_runs WHERE id = {first}") == [{"payload": {}}]


def test_more_than_one_page_is_erased(environment: dict[str, str]) -> None:
    sql(
        environment,
        "INSERT INTO rowcall.job_runs (job_type, status, payload, finished_at)"
        """ SELECT 'noop', 'cancelled', '{"user_id": 7}', now() FROM generate_series(1, 1201)""",
    )
    assert erased(environment, "--payload", '{"user_id": 7}')["erased"] == 1201


def definition_of(environment: dict[str, str], file: Path, name: str, payload: str) -> None:
    """Apply a definition with this payload."""
    file.write_text(f'[definitions.{name}]\njob_type = "noop"\npayload = {payload}\n')
    applied = rowcall(environment, "definitions", "apply", str(file))
    assert applied.returncode == 0, applied.stderr


def test_nothing_of_a_person_is_left_in_a_removed_definition_nor_in_what_was_audited(
    environment: dict[str, str], tmp_path: Path
) -> None:
    definition_of(environment, tmp_path / "file.toml", "zel", f'{{ who = "{MAIL}" }}')
    definition_of(environment, tmp_path / "file.toml", "zel", f'{{ who = "{MAIL}", user_id = 7 }}')
    assert rowcall(environment, "definitions", "remove", "zel").returncode == 0
    told = rowcall(environment, "erase", "--payload", '{"user_id": 7}', "--dry-run").stdout
    assert told == "finished runs that match: 0; definitions: 1; dry run: nothing was erased\n"
    assert MAIL in everything(environment)
    assert erased(environment, "--payload", '{"user_id": 7}')["definitions_erased"] == 1
    assert MAIL not in everything(environment)
    actions = sql(environment, "SELECT action FROM rowcall.audit_log WHERE subject = 'definition' ORDER BY id")
    assert [row["action"] for row in actions] == ["create", "change", "remove", "erase"]
    assert erased(environment, "--payload", '{"user_id": 7}')["definitions_matched"] == 0


def test_a_live_definition_is_named_and_left_until_it_is_changed(environment: dict[str, str], tmp_path: Path) -> None:
    definition_of(environment, tmp_path / "file.toml", "zel", f'{{ who = "{MAIL}", user_id = 7 }}')
    ended = rowcall(environment, "erase", "--payload", '{"user_id": 7}', "--yes")
    assert (ended.returncode, ended.stdout) == (1, "runs erased: 0; effects erased: 0; definitions erased: 0\n")
    assert ended.stderr == (
        "rowcall: matching definitions that have not been removed: zel; change them, or `rowcall definitions remove"
        " zel`, and run"
        " the same command again\n"
    )
    assert everything(environment).count(MAIL) == 2
    definition_of(environment, tmp_path / "file.toml", "zel", '{ user_id = 8, who = "Grace" }')
    definition_of(environment, tmp_path / "file.toml", "zel", "{ user_id = 8 }")
    assert erased(environment, "--payload", '{"user_id": 7}')["definitions_erased"] == 1
    left = everything(environment)
    assert (MAIL in left, '"user_id": 8' in left) == (False, True)
    audited = sql(environment, "SELECT before, after FROM rowcall.audit_log WHERE action = 'change' ORDER BY id")
    kept = [("payload" in row["before"], "payload" in row["after"]) for row in audited]
    assert kept == [(False, True), (True, True)], "what is not the person's stays"


def test_another_filter_beside_the_payload_is_about_runs_and_leaves_definitions(
    environment: dict[str, str], tmp_path: Path
) -> None:
    definition_of(environment, tmp_path / "file.toml", "zel", "{ user_id = 7 }")
    assert erased(environment, "--payload", '{"user_id": 7}', "--type", "noop")["live_definitions"] == []


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--yes"], 2, "specify either ids or filters"),
        (["1", "--type", "noop", "--yes"], 2, "specify either ids or filters"),
        (["1"], 2, "this erases the content of run 1 permanently (--dry-run only counts): there is no terminal to ask"),
        (["1", "--yes"], 1, "there is no run 1"),
        (["9223372036854775808", "--yes"], 2, "is not in the range"),
    ],
)
def test_what_cannot_be_erased_is_refused(
    environment: dict[str, str], words: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, "erase", *words)
    assert refused.returncode == code
    assert complaint in refused.stderr
