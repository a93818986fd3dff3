"""What is wrong with a payload is reported at the path of the value, without the levels that marshmallow adds."""

from __future__ import annotations

from typing import Any

import pytest
from marshmallow import Schema, ValidationError, fields, validate

from rowcall import JobType
from rowcall.base.errors import RunInvalid
from rowcall.queue.keys.holders import natural_key_of

NOT_A_NUMBER = ["Not a valid integer."]


class Pair(Schema):
    """Two numbers, whose names are those of marshmallow's levels."""

    key = fields.Integer()
    value = fields.Integer()


def refuse(value: object) -> None:
    raise ValidationError({"name": ["is odd"]})


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        (fields.Dict(values=fields.Integer()), {"name": "x"}, {"name": NOT_A_NUMBER}),
        (
            fields.Dict(keys=fields.String(validate=validate.Equal("a")), values=fields.Integer()),
            {"a": 1, "b": "x"},
            {"b": ["Must be equal to a.", *NOT_A_NUMBER]},
        ),
        (
            fields.Dict(values=fields.Dict(values=fields.Nested(Pair))),
            {"a": {"b": {"value": "x"}}},
            {"a": {"b": {"value": NOT_A_NUMBER}}},
        ),
        (
            fields.Dict(keys=fields.Integer(), values=fields.Nested(Pair)),
            {"b": {"key": "x"}},
            {"b": {"_schema": NOT_A_NUMBER, "key": NOT_A_NUMBER}},
        ),
        (fields.Nested(Pair), {"key": "x", "value": "x"}, {"key": NOT_A_NUMBER, "value": NOT_A_NUMBER}),
        (fields.Nested(Pair, many=True), [{}, {"value": "x"}], {1: {"value": NOT_A_NUMBER}}),
        (fields.List(fields.Dict(values=fields.Integer())), [{}, {"a": "x"}], {1: {"a": NOT_A_NUMBER}}),
        (fields.Tuple([fields.Dict(values=fields.Integer())]), [{"a": "x"}], {0: {"a": NOT_A_NUMBER}}),
        (fields.Pluck(Pair, "value"), "x", NOT_A_NUMBER),
        (fields.Pluck(Pair, "value", many=True), [1, "x"], {1: NOT_A_NUMBER}),
        (fields.Dict(validate=refuse), {}, [{"name": ["is odd"]}]),
        (fields.Dict(values=fields.Integer()), 7, ["Not a valid mapping type."]),
    ],
)
def test_each_message_is_at_the_path_of_its_value(field: fields.Field[Any], value: object, wrong: object) -> None:
    declared = JobType("declared", schema=type("Declared", (Schema,), {"sent": fields.Raw(), "of": field}))
    with pytest.raises(RunInvalid) as refused:
        declared.checked({"of": value})
    assert refused.value.fields == {"payload": {"of": wrong}}


@pytest.mark.parametrize("key", ["", "a" * 256, "a\nb"], ids=["empty", "long", "unprintable"])
def test_a_derived_key_that_is_invalid_is_a_fault_of_the_payload(key: str) -> None:
    declared = JobType("declared", schema=Pair, key=lambda _: key)
    with pytest.raises(RunInvalid) as refused:
        natural_key_of(declared, {})
    assert refused.value.fields == {
        "payload": "its natural key, which declared derives from it, must be 1 to 255 printable characters"
    }
