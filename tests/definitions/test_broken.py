"""Definitions that one worker cannot decide: they delay no others, and another worker can still decide them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from marshmallow import fields

from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import DefinitionInvalid
from rowcall.definitions import Ticked, checked, pause, tick
from rowcall.definitions.broken import Resting
from rowcall.job_types import Catalogue, JobType
from rowcall.job_types.builtin import AnyPayload
from rowcall.schedule import Outcome
from tests.definitions.keeping import OPERATOR, asleep_since, kept, next_of, occurred, runs_of
from tests.definitions.ticking import BOUND

Key = Callable[[Mapping[str, Any]], Any]


class Unspeakable(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class RefusedAtStart(AnyPayload):
    """A schema that cannot be instantiated."""

    def __init__(self) -> None:
        raise LookupError("no schema")


class WithColour(AnyPayload):
    """The schema of a newer version, with another required field."""

    colour = fields.String(required=True)


def unspeakable(_: Mapping[str, Any]) -> str:
    raise Unspeakable


def leaving(_: Mapping[str, Any]) -> str:
    raise SystemExit(3)


def cancelled(_: Mapping[str, Any]) -> str:
    raise asyncio.CancelledError("at once")


def interrupted(_: Mapping[str, Any]) -> str:
    raise KeyboardInterrupt


def types(**declared: Any) -> Catalogue:
    """Return the types of one version of an app: name -> schema, or key function."""
    module = ModuleType("team")
    for name, given in declared.items():
        is_schema = isinstance(given, type)
        job_type = JobType(name, schema=given if is_schema else AnyPayload, key=None if is_schema else given)
        setattr(module, name, job_type)
    return Catalogue(module)


def due(connection: PgConnection, name: str, ago: str = "3 minutes", **content: Any) -> dict[str, Any]:
    """Store a definition for each minute whose type has its name, and that has not been decided for this long."""
    told = {"schedule": "* * * * *", "catch_up": "all", "payload": {"at": "{time}"}, **content}
    row = kept(connection, name, **told)
    fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = name WHERE id = %(id)s", row)
    asleep_since(connection, row, ago)
    return row


def ticked(connection: PgConnection, known: Catalogue, resting: Resting | None = None) -> Ticked:
    return tick(connection, "worker-1", known, BOUND, resting)


BREAKING = {
    "a key that is a number": (lambda payload: 7, "job type 'failing': its key returned 7 and must return a string"),
    "an error without words": (
        unspeakable,
        "job type 'failing': its key raised Unspeakable: (its message cannot be read)",
    ),
    "an exit": (leaving, "job type 'failing': its key raised SystemExit: 3"),
    "a task that was cancelled": (cancelled, "job type 'failing': its key raised CancelledError: at once"),
    "a schema that cannot be made": (RefusedAtStart, "job type 'failing': its schema raised LookupError: no schema"),
}


@pytest.mark.parametrize(("failing", "error"), BREAKING.values(), ids=BREAKING.keys())
def test_whatever_a_types_code_does_breaks_its_own_definition_alone(
    connection: PgConnection, failing: Any, error: str
) -> None:
    rows = [due(connection, name) for name in ("failing", "working")]
    done = ticked(connection, types(failing=failing, working=AnyPayload))
    assert [(one.name, one.error) for one in done.broken] == [("failing", error)]
    assert [len(occurred(connection, row)) for row in rows] == [0, 3]


def test_an_interrupt_on_another_thread_than_the_main_one_is_the_types_own(connection: PgConnection) -> None:
    rows = [due(connection, name) for name in ("failing", "working")]
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(ticked, connection, types(failing=interrupted, working=AnyPayload)).result()
    assert [(one.name, one.error) for one in done.broken] == [
        ("failing", "job type 'failing': its key raised KeyboardInterrupt: ")
    ]
    assert [len(occurred(connection, row)) for row in rows] == [0, 3]


def test_ctrl_c_ends_a_tick_and_decides_nothing_by_halves(connection: PgConnection) -> None:
    row = due(connection, "failing")
    with pytest.raises(KeyboardInterrupt):
        ticked(connection, types(failing=interrupted))
    assert occurred(connection, row) == []


def test_a_content_that_this_code_cannot_read_breaks_its_own_definition_alone(
    connection: PgConnection,
) -> None:
    rows = [due(connection, name) for name in ("failing", "working")]
    fetch_all(connection, "ALTER TABLE rowcall.job_definitions DROP CONSTRAINT job_definitions_catch_up_known")
    fetch_all(connection, "UPDATE rowcall.job_definitions SET catch_up = 'of a newer version' WHERE name = 'failing'")
    done = ticked(connection, types(failing=AnyPayload, working=AnyPayload))
    assert [one.name for one in done.broken] == ["failing"]
    assert [len(occurred(connection, row)) for row in rows] == [0, 3]


def test_a_broken_definition_is_prepared_once_and_then_rests_until_it_is_edited(connection: PgConnection) -> None:
    tries: list[Any] = []

    def failing(payload: Mapping[str, Any]) -> str:
        tries.append(payload)
        raise ValueError("it will not do")

    known, resting = types(failing=failing), Resting()
    row = due(connection, "failing", "30 minutes")
    assert [ticked(connection, known, resting).broken != [] for _ in range(3)] == [True, False, False]
    assert len(tries) == 1
    fetch_all(connection, "UPDATE rowcall.job_definitions SET revision = revision + 1 WHERE id = %(id)s", row)
    assert ticked(connection, known, resting).broken != []
    assert len(tries) == 2


def test_a_definition_that_has_rested_is_tried_again(connection: PgConnection) -> None:
    known, resting = types(failing=unspeakable), Resting(seconds=0)
    due(connection, "failing")
    assert [len(ticked(connection, known, resting).broken) for _ in range(2)] == [1, 1]


def test_a_broken_definition_is_not_the_next_that_a_tick_waits_for(connection: PgConnection) -> None:
    due(connection, "failing")
    due(connection, "working")
    next_in = ticked(connection, types(failing=unspeakable, working=AnyPayload)).next_in
    assert next_in is not None
    assert next_in > 0


def test_an_edit_is_possible_whatever_the_types_code_does(connection: PgConnection) -> None:
    row = due(connection, "failing")
    pause(connection, row["name"], types(failing=lambda payload: 7), OPERATOR)
    assert occurred(connection, row) == []


def test_a_definition_that_breaks_its_type_is_refused_by_name() -> None:
    with pytest.raises(DefinitionInvalid, match="definition 'mine', job_type: .*its key raised Unspeakable"):
        checked("mine", {"job_type": "failing", "payload": {"at": "{time}"}}, types(failing=unspeakable))


# A rolling deploy: the older worker's type refuses what the newer one's accepts.

NEWER, OLDER = types(changing=AnyPayload), types(changing=WithColour)


def test_what_an_older_worker_cannot_prepare_is_left_to_a_newer_one(connection: PgConnection) -> None:
    row = due(connection, "changing")
    resting = Resting()
    for _ in range(2):
        done = ticked(connection, OLDER, resting)
        assert sum(done.decided.values()) == 0
    assert occurred(connection, row) == []
    assert ticked(connection, NEWER).decided[Outcome.ENQUEUED] == 3
    assert len(runs_of(connection, row)) == 3


def test_what_comes_before_the_time_that_cannot_be_prepared_is_decided(connection: PgConnection) -> None:
    row = due(connection, "changing", "20 minutes", max_lateness="2m")
    done = ticked(connection, OLDER)
    [broken] = done.broken
    assert "changing refuses the payload" in broken.error
    told = occurred(connection, row)
    assert {one["outcome"] for one in told} == {"missed"}
    assert next_of(connection, row) == told[-1]["nominal_at"] + timedelta(minutes=1)


def test_after_15_minutes_a_time_that_nobody_could_prepare_is_missed(connection: PgConnection) -> None:
    row = due(connection, "changing", "20 minutes")
    assert ticked(connection, OLDER).decided[Outcome.MISSED] in (5, 6)
    assert all("changing refuses the payload" in one["reason"] for one in occurred(connection, row))
    assert ticked(connection, NEWER).decided[Outcome.ENQUEUED] in (14, 15)


def test_an_edit_leaves_no_time_undecided_that_its_own_types_refuse(connection: PgConnection) -> None:
    row = due(connection, "changing")
    pause(connection, row["name"], OLDER, OPERATOR)
    assert [one["outcome"] for one in occurred(connection, row)] == ["missed"] * 3
