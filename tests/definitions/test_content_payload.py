"""Payloads, durations and limits in a definition's content."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from marshmallow import Schema
from marshmallow import fields as schema_fields

from rowcall.base.errors import DefinitionInvalid
from rowcall.definitions import checked
from rowcall.job_types import Catalogue, JobType
from tests.definitions.checking import HUGE, content, refusals

# A payload must fit its job type after its placeholders are replaced.


def test_a_payload_is_checked_as_it_will_be_when_its_time_comes() -> None:
    assert content(job_type="cleanup_nightly", payload={"day": "{date-1}"}).payload == {"day": "{date-1}"}
    for payload, sentence in (
        ({"day": "{month}"}, "day: Not a valid date"),
        ({"day": "{date-1"}, "payload.day has a single '{': {date}, {date-1}, "),
        ({"day": "{yesterday}"}, "payload.day has '{yesterday}', which is not a placeholder"),
        ({}, "day: Missing data for required field"),
        ({"day": "{date}", "hour": 3}, "hour: Unknown field"),
    ):
        assert sentence in str(_only(refusals(job_type="cleanup_nightly", payload=payload)))


def _only(refused: dict[str, object]) -> object:
    [(field, sentence)] = refused.items()
    assert field == "payload"
    # Programs get the errors as marshmallow nests them; people get a sentence.
    error = DefinitionInvalid("nightly", refused)
    return str(error) if not isinstance(sentence, str) else sentence


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (date(2026, 3, 29), "2026-03-29"),
        (time(2, 30), "02:30:00"),
        (datetime(2026, 3, 29, 2, 30), "2026-03-29T02:30:00"),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), "2026-03-29T02:30:00+00:00"),
        (("a", ("b",)), ["a", ["b"]]),
        ([None, True, 1, 1.5, {"a": []}], [None, True, 1, 1.5, {"a": []}]),
    ],
)
def test_a_payload_is_kept_as_json_holds_it(value: object, kept: object) -> None:
    assert content(payload={"of": [{"it": value}]}).payload == {"of": [{"it": kept}]}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (float("nan"), "payload.of[1].it is nan, which JSON cannot represent"),
        (float("-inf"), "payload.of[1].it is -inf, which JSON cannot represent"),
        (b"bytes", "payload.of[1].it is b'bytes', which JSON cannot represent"),
        ({1, 2}, "payload.of[1].it is {1, 2}, which JSON cannot represent"),
        (Decimal("1.5"), "payload.of[1].it is Decimal('1.5'), which JSON cannot represent"),
        ({1: 2}, "payload.of[1].it has the key 1, which is not text: quote it"),
        ({None: 2}, "payload.of[1].it has the key null, which is not text"),
        ("a\0b", "a null character"),
        pytest.param("\ud800", "half of a surrogate pair", id="surrogate"),
        pytest.param(HUGE, "Exceeds the limit", id="huge"),
        ("x" * 70_000, "the limit is 65536"),
    ],
)
def test_what_a_table_cannot_hold_is_refused_with_its_place(value: object, sentence: str) -> None:
    assert sentence in str(_only(refusals(payload={"of": [0, {"it": value}]})))


def test_a_payload_may_nest_as_deep_as_a_request_and_no_deeper() -> None:
    def nested(levels: int) -> dict[str, Any]:
        return {"a": nested(levels - 1)} if levels > 1 else {}

    assert content(payload=nested(31)).payload == nested(31)
    for levels in (32, 400):
        assert refusals(payload=nested(levels)) == {
            "payload": "nests deeper than 32 levels: store the data, and send its id"
        }
    endless: list[object] = []
    endless.append(endless)
    assert "nests deeper" in str(refusals(payload={"a": endless}))


# Code may use Python's own types.


def test_durations_may_be_timedeltas() -> None:
    kept = content(max_lateness=timedelta(hours=6), jitter=timedelta(milliseconds=1500))
    assert (kept.max_lateness, kept.jitter) == (timedelta(hours=6), timedelta(seconds=1.5))
    assert "is not between 0 and ten years" in str(refusals(jitter=timedelta(days=-1))["jitter"])


# A type's max_running limits its queue.


class Anything(Schema):
    order_id = schema_fields.Integer(load_default=0)


def test_runs_of_a_type_with_a_limit_stay_in_its_queue() -> None:
    module = ModuleType("shop.job_types")
    vars(module)["NARROW"] = JobType("narrow", Anything, queue="narrow", max_running=2)
    shop = Catalogue(module)
    for queue in (None, "narrow"):
        assert checked("packing", {"job_type": "narrow", "queue": queue}, shop).queue == queue
    assert refusals("packing", shop, job_type="narrow", queue="mail") == {
        "queue": "must be narrow: the max_running of narrow applies to that queue"
    }
