"""`rowcall demo seed` creates a small SaaS, once."""

from __future__ import annotations

import json
import re

from rowcall.base import database
from tests.example.queries.rows import user
from tests.support.processes import LIMIT_SECONDS, rowcall, start


def test_it_says_what_it_added_and_the_second_time_that_there_was_nothing_to_add(environment: dict[str, str]) -> None:
    first = rowcall(environment, "demo", "seed", "--users", "3", "--today", "2026-11-21")
    assert first.returncode == 0, first.stderr
    assert re.fullmatch(
        r"added 3 users, \d+ orders, 12 invoices, \d+ sessions, 5 cache entries, as of 2026-11-21\n", first.stdout
    )
    again = rowcall(environment, "demo", "seed", "--users", "3")
    assert (again.returncode, again.stdout) == (0, "the demo's 3 users already exist: nothing added\n")
    more = json.loads(rowcall(environment, "demo", "seed", "--users", "4", "--json").stdout)
    assert (more["users"], more["invoices"], more["cache_entries"]) == (1, 4, 0)


def test_a_database_with_users_of_its_own_is_refused(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        user(connection, email="somebody@shop.test")
    refused = rowcall({**environment, "DATABASE_URL": fresh_url}, "demo", "seed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("rowcall: this database has users that are not the demo's")


def test_a_schema_of_somebody_elses_is_refused_and_left_as_it_was(
    environment: dict[str, str], migrated_url: str
) -> None:
    with database.transaction(migrated_url) as connection:
        database.fetch_all(connection, "CREATE SCHEMA example; CREATE TABLE example.users (email text)")
    refused = rowcall({**environment, "DATABASE_URL": migrated_url}, "demo", "seed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(
        "rowcall: this database has a schema `example` with tables that are not the demo's"
    )
    with database.transaction(migrated_url) as connection:
        tables = "SELECT relname FROM pg_class WHERE relnamespace = 'example'::regnamespace"
        assert database.fetch_all(connection, tables) == [{"relname": "users"}]


def test_a_schema_that_was_prepared_and_is_empty_is_filled(environment: dict[str, str], migrated_url: str) -> None:
    with database.transaction(migrated_url) as connection:
        database.fetch_all(connection, "CREATE SCHEMA example")
    assert rowcall({**environment, "DATABASE_URL": migrated_url}, "demo", "seed", "--users", "1").returncode == 0


def test_two_seeds_at_once_in_a_new_database_both_succeed_and_add_it_once(
    environment: dict[str, str], migrated_url: str
) -> None:
    environment |= {"DATABASE_URL": migrated_url}
    seeds = [start(environment, "demo", "seed", "--users", "2") for _ in range(2)]
    said = sorted(process.communicate(timeout=LIMIT_SECONDS)[0] for process in seeds)
    assert [process.returncode for process in seeds] == [0, 0], said
    assert said[0].startswith("added 2 users")
    assert said[1] == "the demo's 2 users already exist: nothing added\n"


def test_what_cannot_be_meant_is_a_wrong_use(environment: dict[str, str]) -> None:
    for arguments in (["--users", "0"], ["--today", "2026-02-30"]):
        assert rowcall(environment, "demo", "seed", *arguments).returncode == 2


def test_the_database_of_another_app_is_left_alone(environment: dict[str, str], migrated_url: str) -> None:
    refused = rowcall({**environment, "DATABASE_URL": migrated_url, "ROWCALL_APP": "shop"}, "demo", "seed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("rowcall: ROWCALL_APP is 'shop', so this database is probably that app's")
    with database.transaction(migrated_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regnamespace('example')::text") is None
