"""`rowcall keys`: what the commands read and print."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from tests.support.processes import rowcall

KEY = re.compile(r"rc_[0-9a-f]{8}_[0-9a-f]{64}\n")


@pytest.mark.parametrize(
    ("name", "expires", "lives"),
    [
        ("quarterly", "90d", timedelta(days=90)),
        ("hourly", "2 hours", timedelta(hours=2)),
        ("until", "2099-01-31T00:00+01:00", None),
    ],
)
def test_a_key_expires_after_a_length_of_time_or_at_a_moment(
    environment: dict[str, str], module_url: str, name: str, expires: str, lives: timedelta | None
) -> None:
    done = rowcall(environment, "keys", "create", name, "--scope", "read", "--expires", expires)
    assert (done.returncode, bool(KEY.fullmatch(done.stdout))) == (0, True)
    with database.transaction(module_url) as connection:
        row = api_keys.list_keys(connection)[-1]
    if lives:
        assert abs(row["expires_at"] - row["created_at"] - lives) < timedelta(minutes=1)
    else:
        assert row["expires_at"] == datetime(2099, 1, 30, 23, tzinfo=UTC)
    assert done.stderr.startswith(
        f"this is key {row['id']}, for {name}, and is not shown again; it expires at {row['expires_at'].year}-"
    )


@pytest.mark.parametrize("expires", ["90", "soon", "-1d", "2020-02-30", "next moon", "10000y", ""])
def test_an_end_that_cannot_be_read_is_refused_by_its_option(environment: dict[str, str], expires: str) -> None:
    refused = rowcall(environment, "keys", "create", "ci", "--scope", "read", "--expires", expires)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is not a time: write 'now', " in " ".join(refused.stderr.replace("│", " ").split())


def test_a_key_that_would_have_expired_at_once_is_not_made(environment: dict[str, str]) -> None:
    refused = rowcall(environment, "keys", "create", "ended", "--scope", "read", "--expires", "0d")
    assert (refused.returncode, "a key must expire in the future" in refused.stderr) == (1, True)


def test_a_rotation_shows_the_new_key_once(environment: dict[str, str], module_url: str) -> None:
    with database.transaction(module_url) as connection:
        prefix = api_keys.create_key(connection, "rotated", ["read"], Operator("cli:ada")).split("_")[1]
        key_id = next(key["id"] for key in api_keys.list_keys(connection) if key["prefix"] == prefix)
    shown = rowcall(environment, "keys", "rotate", str(key_id))
    assert (shown.returncode, bool(KEY.fullmatch(shown.stdout))) == (0, True)
    new_id = str(key_id + 1)
    assert shown.stderr.startswith(f"this is key {new_id}, and is not shown again; key {key_id} expires at ")
    told = json.loads(rowcall(environment, "keys", "rotate", new_id, "--grace", "1h", "--json").stdout)
    assert KEY.fullmatch(told["key"] + "\n")
    assert told["old_ends_at"]
    assert told["id"] == key_id + 2
    refused = rowcall(environment, "keys", "rotate", str(key_id), "--grace", "24")
    assert (refused.returncode, "is not a duration: write 24h" in refused.stderr) == (2, True)


def test_a_key_is_limited_to_job_types_and_queues_and_so_is_the_one_that_replaces_it(
    environment: dict[str, str], connection: PgConnection
) -> None:
    limits = ("--types", "prune_runs, noop", "--queues", "default")
    made = rowcall(environment, "keys", "create", "limited", "--scope", "enqueue", *limits)
    assert made.returncode == 0, made.stderr
    [listed] = [row for row in api_keys.list_keys(connection) if row["name"] == "limited"]
    rowcall(environment, "keys", "rotate", str(listed["id"]))
    rows = [row for row in api_keys.list_keys(connection) if row["name"] == "limited"]
    assert [(row["job_types"], row["queues"]) for row in rows] == [(["prune_runs", "noop"], ["default"])] * 2


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (("--types", "noop,chrage_invoice"), "there is no job type 'chrage_invoice'; known here: "),
        (("--types", ""), "there is no job type ''"),
        (("--queues", "paymets"), "there is no queue 'paymets': `rowcall queues list` shows all"),
    ],
)
def test_a_key_is_limited_only_to_what_is_there(
    environment: dict[str, str], connection: PgConnection, limit: tuple[str, str], told: str
) -> None:
    refused = rowcall(environment, "keys", "create", "wrong", "--scope", "enqueue", *limit)
    assert (refused.returncode, told in refused.stderr) == (1, True), refused.stderr
    assert "wrong" not in {row["name"] for row in api_keys.list_keys(connection)}


def test_the_help_says_that_a_key_can_have_several_scopes(environment: dict[str, str]) -> None:
    helped = " ".join(rowcall(environment, "keys", "create", "--help").stdout.split())
    assert "[enqueue|read|operate|admin] What the key may do. May be repeated." in helped


def test_a_key_is_named_by_its_id(environment: dict[str, str]) -> None:
    for command in ("rotate", "revoke"):
        refused = rowcall(environment, "keys", command, "ops")
        assert refused.returncode == 2
        assert "'ops' is not the id of a key: `rowcall keys list` shows the ids" in " ".join(refused.stderr.split())
