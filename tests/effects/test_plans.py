"""The plans of operators' queries on the ledger: with 100,000 effects per table, each reads only its index range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from rowcall.base import database
from rowcall.base.database import LARGEST_ID, PgConnection
from rowcall.effects import TABLES
from rowcall.effects.find import BOUND, BY_KEY, BY_REFERENCE
from rowcall.effects.kinds import table_of
from rowcall.effects.lists import COUNT_UNKNOWN, DECLARED_KINDS, UNRESOLVED_RUNS, page_sql
from rowcall.queue.fragments import BY_INDEX
from rowcall.queue.views.pages import Order
from tests.support.plans import looked_at, plan

MANY = 100_000
LIMIT = 50

# Most emails are applied, as in production.  The few charges with an unknown outcome are older than all refused ones.
FILL = f"""
INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state, applied_at)
SELECT 'mail:' || number, number / 10, 1, '', 'applied', now() FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.payments (idempotency_key, run_id, lease_no, content_hash, state)
SELECT 'charge:' || number, number, 1, '', CASE WHEN number <= 20 THEN 'unknown' ELSE 'refused' END
FROM generate_series(1, {MANY}) AS number;
INSERT INTO rowcall.other_effects (kind, key, run_id, lease_no, content_hash, state, applied_at)
SELECT CASE WHEN number <= 20 THEN 'faxes' ELSE 'sms' END, number, number, 1, '', 'applied', now()
FROM generate_series(1, {MANY}) AS number
"""


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[PgConnection]:
    connection = database.connect(module_url)
    connection.autocommit = True
    database.fetch_all(connection, FILL)
    database.fetch_all(connection, "VACUUM (ANALYZE) rowcall.sent_emails, rowcall.payments, rowcall.other_effects")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("order", "behind"),
    [(Order.DESC, LARGEST_ID), (Order.DESC, MANY // 2), (Order.ASC, 0), (Order.ASC, MANY // 2)],
)
@pytest.mark.parametrize(
    ("kind", "states", "run_id", "table"),
    [
        (None, [], None, "sent_emails"),
        (None, [], None, "payments"),
        ("sent_emails", ["applied"], None, "sent_emails"),
        ("sent_emails", ["applied", "unknown"], None, "sent_emails"),
        ("payments", ["unknown"], None, "payments"),
        ("payments", ["intent"], None, "payments"),
        ("payments", ["refused", "unknown"], None, "payments"),
        (None, ["unknown"], None, "payments"),
        ("sent_emails", [], 4711, "sent_emails"),
        ("payments", ["unknown"], 4711, "payments"),
        (None, [], None, "other_effects"),
        ("sms", [], None, "other_effects"),
        ("faxes", [], None, "other_effects"),
        ("faxes", ["applied"], None, "other_effects"),
        ("faxes", ["unknown", "intent"], None, "other_effects"),
        ("sms", [], 4711, "other_effects"),
    ],
)
def test_a_page_looks_at_little_more_than_it_shows(
    filled: PgConnection,
    kind: str | None,
    states: Sequence[str],
    run_id: int | None,
    table: str,
    order: Order,
    behind: int,
) -> None:
    tables = [table_of(kind)] if kind else TABLES
    places = {f"behind_{table.name}": behind for table in TABLES}
    known = {"kind": kind, "limit": LIMIT, "run_id": run_id, "states": list(states) or None}
    assert looked_at(plan(filled, page_sql(tables, states, run_id, order), known | places), table) <= 2 * (LIMIT + 1)


@pytest.mark.parametrize("order", Order)
def test_a_page_of_a_runs_effects_builds_only_what_it_shows(filled: PgConnection, order: Order) -> None:
    known = {"kind": None, "limit": 1, "run_id": 4711, "states": None, "behind_sent_emails": order.beginning}
    nodes = plan(filled, page_sql([table_of("sent_emails")], [], 4711, order), known)
    [of_the_run] = [node for node in nodes if node.get("Subplan Name") == "CTE its"]
    assert (of_the_run["Actual Rows"], of_the_run["Plan Width"]) == (10, 8), "only their ids"


def test_counting_what_waits_for_an_operator_looks_at_what_is_counted(filled: PgConnection) -> None:
    database.fetch_all(filled, "UPDATE rowcall.payments SET state = 'unknown' WHERE id %% 10 = 0", {})
    assert looked_at(plan(filled, COUNT_UNKNOWN, {}), "payments") == 1000
    assert looked_at(plan(filled, BY_INDEX + UNRESOLVED_RUNS, {"not_repeated": ["sent_emails"]}), "payments") == 1000


def test_naming_the_kinds_looks_at_one_effect_of_each(filled: PgConnection) -> None:
    assert looked_at(plan(filled, DECLARED_KINDS, {}), "other_effects") <= 3


def test_a_key_is_found_by_its_index(filled: PgConnection) -> None:
    by_key = {"idempotency_key": "mail:4711", "limit": LIMIT}
    assert looked_at(plan(filled, BY_INDEX + BY_KEY["sent_emails"], by_key), "sent_emails") == 1
    of_all_kinds = {"key": "4711", "kinds": ["faxes", "sms"], "limit": LIMIT}
    assert looked_at(plan(filled, BY_INDEX + BY_KEY["other_effects"], of_all_kinds), "other_effects") == 1


def test_a_reference_is_compared_in_the_newest_effects_only(filled: PgConnection) -> None:
    [node] = [one for one in plan(filled, BY_INDEX + BOUND["sent_emails"], {"most": 1000}) if "Relation Name" in one]
    assert (node["Node Type"], node["Actual Rows"]) == ("Index Only Scan", 1001)
    newest = {"id": MANY - 1000, "text": "nobody", "limit": LIMIT}
    assert looked_at(plan(filled, BY_INDEX + BY_REFERENCE["sent_emails"], newest), "sent_emails") == 1000
