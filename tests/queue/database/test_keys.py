"""Two keys: the natural key identifies the fact of a run, and the idempotency key the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from marshmallow import Schema, fields

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_value
from rowcall.base.errors import DeclarationError, KeyConflict, NaturalKeyConflict, NaturalKeyHeld
from rowcall.job_types import JobType
from rowcall.queue import Enqueued, enqueue, enqueue_many
from rowcall.queue.operations import Action
from rowcall.status import Status
from tests.support.invoices import OPERATOR, TYPES, Invoice, charge, charging, declare, end
from tests.support.operations import done, refusals
from tests.support.rows import row_of


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, *TYPES)


def test_two_requests_of_one_call_with_one_natural_key_are_named_both(connection: PgConnection) -> None:
    payloads: list[dict[str, Any]] = [{"invoice_id": 1}, {"invoice_id": 70}, {"invoice_id": 70, "note": "urgent"}]
    named = r"^request 2 and request 3 have the same natural key '70' but different content: "
    with pytest.raises(NaturalKeyConflict, match=named) as said:
        enqueue_many(connection, "charge", payloads)
    assert str(said.value).endswith(": send only one of them, or the same content in both")


def runs(connection: PgConnection) -> int:
    found: int = fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs")
    return found


@pytest.mark.parametrize("key", [None, "another request"])
def test_a_fact_that_has_a_run_gets_no_second_one_whatever_the_callers_key(
    connection: PgConnection, key: str | None
) -> None:
    first = charge(connection, key="a request")
    with pytest.raises(NaturalKeyConflict, match=f"run {first.run_id} of charge holds the natural key '7'"):
        charge(connection, key=key, priority=1)
    assert charge(connection, key=key) == Enqueued(first.run_id, replayed=True)
    assert runs(connection) == 1


def test_a_callers_key_blocks_no_fact_and_no_other_caller(connection: PgConnection) -> None:
    for owner in ("app", "api:shop"):
        enqueue(connection, "charge", {"invoice_id": 1 if owner == "app" else 2}, key="7", key_owner=owner)
    assert not charge(connection).replayed
    assert not charge(connection, job_type="refund").replayed
    assert runs(connection) == 4


def test_a_replay_is_one_of_the_same_type_and_the_same_caller(connection: PgConnection) -> None:
    by_type = {name: charge(connection, 7, name).run_id for name in ("charge", "refund")}
    assert {name: charge(connection, 7, name).run_id for name in by_type} == by_type
    by_owner = {
        owner: charge(connection, number, key="k", key_owner=owner).run_id for number, owner in enumerate(("a", "b"))
    }
    again = {
        owner: charge(connection, number, key="k", key_owner=owner).run_id for number, owner in enumerate(("a", "b"))
    }
    assert again == by_owner


def test_a_callers_key_is_its_owners_alone(connection: PgConnection) -> None:
    first = charge(connection, 1, key="k", key_owner="api:shop")
    assert charge(connection, 1, key="k", key_owner="api:shop") == Enqueued(first.run_id, replayed=True)
    assert not charge(connection, 2, key="k", key_owner="api:guest").replayed
    with pytest.raises(KeyConflict, match="'k' belongs to run"):
        charge(connection, 3, key="k", key_owner="api:shop")


def test_where_both_keys_are_taken_by_different_runs_both_are_named(connection: PgConnection) -> None:
    one, other = charge(connection, 1, key="k"), charge(connection, 2)
    with pytest.raises(KeyConflict, match=f"run {one.run_id}, .* run {other.run_id} holds the natural key '2'"):
        charge(connection, 2, key="k")


def test_many_follow_the_same_rules(connection: PgConnection) -> None:
    first = charge(connection, 1)
    outcomes = enqueue_many(
        connection, "charge", [{"invoice_id": 1}, {"invoice_id": 2}, {"invoice_id": 2}], keys=["a", "b", "c"]
    )
    assert [outcome.replayed for outcome in outcomes] == [True, False, True]
    assert outcomes[0].run_id == first.run_id
    assert outcomes[1].run_id == outcomes[2].run_id
    with pytest.raises(NaturalKeyConflict):
        enqueue_many(connection, "charge", [{"invoice_id": 3}, {"invoice_id": 1, "note": "other"}])
    assert runs(connection) == 2


def test_many_keep_the_mode_of_their_type_and_the_owner_of_their_keys(connection: PgConnection) -> None:
    payloads = [{"invoice_id": number} for number in (1, 2)]
    outcomes = enqueue_many(connection, "live", payloads, keys=["a", "b"], key_owner="api:shop")
    rows = [row_of(connection, outcome.run_id) for outcome in outcomes]
    assert [(row["unique_mode"], row["key_owner"]) for row in rows] == [("live", "api:shop")] * 2
    assert row_of(connection, charge(connection, 3, key_owner="cli").run_id)["key_owner"] == "cli"


ROOM = {
    "charge": set(),
    "until_failed": {Status.DEAD, Status.CANCELLED},
    "live": {Status.DEAD, Status.CANCELLED, Status.SUCCEEDED},
}


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED])
@pytest.mark.parametrize("job_type", ROOM)
def test_the_type_says_whether_a_run_that_has_ended_makes_room(
    connection: PgConnection, job_type: str, status: Status
) -> None:
    first = charge(connection, job_type=job_type)
    end(connection, first.run_id, status)
    assert row_of(connection, first.run_id)["natural_key"] == "7"
    assert charge(connection, job_type=job_type).replayed == (status not in ROOM[job_type])


def test_a_repeated_request_is_a_replay_though_another_run_has_its_fact_by_now(connection: PgConnection) -> None:
    first = charge(connection, job_type="live", key="first")
    end(connection, first.run_id, Status.SUCCEEDED)
    assert not charge(connection, job_type="live", key="second").replayed
    assert charge(connection, job_type="live", key="first") == Enqueued(first.run_id, replayed=True)


def test_a_retry_takes_the_fact_again_or_names_the_run_that_has_it(connection: PgConnection) -> None:
    first = charge(connection, job_type="until_failed")
    end(connection, first.run_id, Status.DEAD)
    queue.retry(connection, first.run_id, OPERATOR)
    assert charge(connection, job_type="until_failed").replayed
    end(connection, first.run_id, Status.CANCELLED)
    second = charge(connection, job_type="until_failed")
    with pytest.raises(NaturalKeyHeld, match=f"run {second.run_id} holds the natural key"):
        queue.retry(connection, first.run_id, OPERATOR)
    assert row_of(connection, first.run_id)["status"] == Status.CANCELLED


def test_of_many_retried_only_those_are_left_whose_fact_another_run_has(connection: PgConnection) -> None:
    dead = [charge(connection, invoice, "until_failed").run_id for invoice in (1, 2, 3)]
    for run_id in dead:
        end(connection, run_id, Status.DEAD)
    charge(connection, 2, "until_failed")
    outcome = done(connection, Action.RETRY, status=(Status.DEAD,))
    assert (outcome["changed"], [*refusals(connection, outcome)]) == (2, [dead[1]])


def test_a_clone_makes_no_second_run_of_a_fact(connection: PgConnection) -> None:
    first = charge(connection).run_id
    with pytest.raises(NaturalKeyHeld, match=f"run {first} holds the natural key"):
        queue.clone(connection, first, OPERATOR)
    clone = queue.clone(connection, first, OPERATOR, payload={"invoice_id": 8}, key="once")
    assert row_of(connection, clone.run_id)["natural_key"] == "8"
    assert queue.clone(connection, first, OPERATOR, payload={"invoice_id": 8}, key="once").replayed
    with pytest.raises(NaturalKeyHeld, match=f"run {clone.run_id} holds the natural key"):
        queue.clone(connection, first, OPERATOR, payload={"invoice_id": 8})
    dead = charge(connection, 9, "live").run_id
    end(connection, dead, Status.DEAD)
    live = row_of(connection, queue.clone(connection, dead, OPERATOR).run_id)
    assert (live["held_key"], live["unique_mode"]) == ("9", "live")


class Grown(Invoice):
    """The same schema, a version later."""

    currency = fields.String(load_default="eur")


def test_a_field_with_a_default_that_a_schema_gains_leaves_the_request_the_same(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = charge(connection, key="k")
    declare(monkeypatch, JobType("charge", schema=Grown, key=lambda payload: str(payload["invoice_id"])))
    assert charge(connection, key="k") == Enqueued(first.run_id, replayed=True)
    with pytest.raises(KeyConflict):
        enqueue(connection, "charge", {"invoice_id": 7, "currency": "eur"}, key="k")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"lines": [{"sku": 1}]}, {"lines": [{"sku": "1"}]}),
        ({"lines": []}, {"lines": ()}),
    ],
)
def test_what_is_compared_are_the_values_as_the_schema_reads_them(
    connection: PgConnection, monkeypatch: pytest.MonkeyPatch, one: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    line = Schema.from_dict({"sku": fields.Integer(), "number": fields.Integer(load_default=1)})
    order = Schema.from_dict({"lines": fields.List(fields.Nested(line))})
    declare(monkeypatch, JobType("order", schema=order))
    enqueue(connection, "order", one, key="k")
    assert enqueue(connection, "order", other, key="k").replayed
    with pytest.raises(KeyConflict):
        enqueue(connection, "order", {"lines": [{"sku": 1, "number": 1}]}, key="k")


def test_a_mode_that_is_none_is_refused_where_it_stands() -> None:
    with pytest.raises(DeclarationError, match="unique is 'always' and must be one of ever, until_failed, live"):
        charging("charge", "always")
