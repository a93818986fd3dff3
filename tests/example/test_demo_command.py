"""`rowcall demo seed`: a small SaaS, once."""

from __future__ import annotations

import json
import re

from rowcall.base import database
from tests.example.queries.rows import user
from tests.support.processes import rowcall


def test_it_says_what_it_added_and_the_second_time_that_there_was_nothing_to_add(environment: dict[str, str]) -> None:
    first = rowcall(environment, "demo", "seed", "--users", "3", "--today", "2026-11-21")
    assert first.returncode == 0, first.stderr
    assert re.fullmatch(
        r"added 3 users, \d+ orders, 12 invoices, \d+ sessions, 5 cache entries, as of 2026-11-21\n", first.stdout
    )
    again = rowcall(environment, "demo", "seed", "--users", "3")
    assert (again.returncode, again.stdout) == (0, "the demo's 3 users are there already: nothing added\n")
    more = json.loads(rowcall(environment, "demo", "seed", "--users", "4", "--json").stdout)
    assert (more["users"], more["invoices"], more["cache_entries"]) == (1, 4, 0)


def test_a_database_with_users_of_its_own_is_refused(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        user(connection, email="somebody@shop.test")
    refused = rowcall({**environment, "DATABASE_URL": fresh_url}, "demo", "seed")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("rowcall: this database has users that are not the demo's")


def test_what_cannot_be_meant_is_a_wrong_use(environment: dict[str, str]) -> None:
    for arguments in (["--users", "0"], ["--today", "2026-02-30"]):
        assert rowcall(environment, "demo", "seed", *arguments).returncode == 2
