"""The JSON Schema of a payload and its marshmallow schema agree, for many fields and validators."""

from __future__ import annotations

import enum
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it carries no types
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from rowcall import JobType
from rowcall_api.payload_schemas import payload_schema

NUMBERS = [0, 1, -1, 2, 10, 11, 0.5, 1.5, -0.5, 10.25, 4102444800]
TEXTS = ["", "a", "b", "ab", "abc", "red", "RED", "blue", "1", "1.50", "-0.5", "1e3", "x y", "NaN"]
TIMES = ["2026-03-01", "2026-03-01T10:00:00", "2026-03-01T10:00:00+01:00", "2026-03-01T10:00:00Z", "10:30:00"]
FORMS = ["2026", "01.03.2026", "Sun, 01 Mar 2026 10:00:00 +0000", "8f14e45f-ceea-467f-9575-1a2b3c4d5e6f", "1.2.3.4"]
SCALARS = [*NUMBERS, *TEXTS, *TIMES, *FORMS, True, False, None]
LISTS = [[], [1], [1, 2], [11], ["a"], ["a", "b"], ["c"], ["a", "a", "b"], [1, "a"], [1, "a", 2], ["red"], [None]]
MAPS: list[dict[str, Any]] = [{}, {"a": 1}, {"a": "x"}, {"ab": 1, "b": 2}, {"n": 1}, {"n": 1, "more": 2}]
SAMPLES = [*SCALARS, *LISTS, [{"n": 1}], [{"n": "x"}], ["2026-03-01"], *MAPS]


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Numbered(Schema):
    """A number."""

    n = fields.Integer(strict=True, required=True)


def text(*validators: Any, **more: Any) -> fields.String:
    return fields.String(validate=list(validators), **more)


def whole(*validators: Any, **more: Any) -> fields.Integer:
    return fields.Integer(strict=True, validate=list(validators), **more)


def texts(*validators: Any) -> fields.List[Any]:
    return fields.List(fields.String(), validate=list(validators))


# Fields whose JSON Schema says all that marshmallow checks, except that it takes 1.0 for a whole number.
EXACT: list[fields.Field[Any]] = [
    text(),
    text(validate.Length(1, 2)),
    text(validate.Length(equal=2), allow_none=True),
    text(validate.Length(min=2), validate.Length(min=1, max=3)),
    text(validate.OneOf(["a", "b"])),
    text(validate.OneOf(["a", "b"]), validate.OneOf(["b", "c"]), allow_none=True),
    text(validate.Equal("a")),
    text(validate.NoneOf(["a", "b"])),
    text(validate.NoneOf(["a", None]), allow_none=True),
    text(validate.Regexp("[a-z]+$"), validate.Regexp("a|b")),
    text(validate.And(validate.Length(2), validate.Regexp("[a-z]"))),
    whole(),
    whole(validate.Range(1, 10)),
    whole(validate.Range(1, 10, min_inclusive=False, max_inclusive=False)),
    whole(validate.Range(0), validate.Range(1, min_inclusive=False), validate.Range(max=10)),
    whole(validate.Range(1), validate.Range(1, min_inclusive=False)),
    whole(validate.OneOf([1, 2])),
    fields.Float(validate=validate.Range(Decimal("-0.5"), 1.5, min_inclusive=False)),
    fields.Decimal(),
    fields.Decimal(as_string=True, places=2),
    fields.NaiveDateTime(allow_none=True),
    fields.DateTime(allow_none=True),
    fields.AwareDateTime(),
    fields.Enum(Colour),
    fields.Enum(Colour, by_value=True, validate=validate.OneOf([Colour.RED]), allow_none=True),
    fields.UUID(),
    texts(validate.ContainsOnly(["a", "b"])),
    texts(validate.ContainsOnly(["a", "b"]), validate.Length(1, 2)),
    texts(validate.ContainsOnly(["a", "b"]), validate.ContainsOnly(["b", "c"])),
    fields.List(text(validate.OneOf(["a", "c"])), validate=validate.ContainsOnly(["a", "b"])),
    fields.List(whole(validate.Range(max=10))),
    fields.Dict(keys=text(validate.Length(max=1)), values=whole(), validate=validate.Length(1)),
    fields.Tuple([whole(), text()]),
    fields.Nested(Numbered),
    fields.Nested(Numbered, many=True, validate=validate.Length(1)),
    fields.Raw(allow_none=True),
]

# Fields that JSON Schema describes only in part.
LOOSE: list[fields.Field[Any]] = [
    text(validate.OneOf("abc")),
    text(validate.ContainsOnly("ab")),
    text(validate.Predicate("isupper")),
    text(validate.Regexp(re.compile("A", re.IGNORECASE))),
    whole(lambda value: value > 1),
    fields.Integer(),
    fields.Decimal(as_string=True, validate=validate.Range(Decimal("0.5"), 10)),
    fields.Decimal(as_string=True, validate=validate.OneOf([Decimal("1.50")])),
    fields.Decimal(as_string=True, allow_nan=True),
    fields.Float(as_string=True),
    fields.Boolean(truthy={"a"}, falsy={"b"}),
    fields.DateTime(format="%Y"),
    fields.DateTime(format="rfc"),
    fields.DateTime(format="timestamp"),
    fields.NaiveDateTime(timezone=UTC),
    fields.NaiveDateTime(format="%d.%m.%Y"),
    fields.AwareDateTime(validate=validate.Range(datetime(2026, 1, 1, tzinfo=UTC))),
    fields.Date(validate=validate.OneOf([date(2026, 3, 1)])),
    fields.Date(format="%d.%m.%Y"),
    fields.Date(load_default="today"),
    fields.Time(),
    fields.TimeDelta(validate=validate.Range(timedelta(seconds=1), min_inclusive=False)),
    fields.List(fields.Date(), validate=validate.ContainsOnly([date(2026, 3, 1)])),
    fields.Dict(keys=fields.Integer(), values=whole()),
    fields.Nested(Numbered, unknown=EXCLUDE),
    fields.Pluck(Numbered, "n"),
    fields.Constant(7),
    fields.IPv4(),
]


def named(field: fields.Field[Any]) -> str:
    return f"{type(field).__name__}-{', '.join(type(one).__name__ for one in field.validators)}"


def converted(field: fields.Field[Any]) -> tuple[Schema, Draft202012Validator]:
    """Return a schema with this field, and a validator of its JSON Schema."""
    declared = type("Declared", (Schema,), {"of": field})
    schema = payload_schema(JobType("declared", schema=declared))
    Draft202012Validator.check_schema(schema)
    assert [*schema["properties"]] == ["of"]
    return declared(), Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def loads(schema: Schema, payload: dict[str, Any]) -> bool:
    try:
        schema.load(payload)
    except ValidationError:
        return False
    return True


def is_unchanged(schema: Schema, payload: dict[str, Any]) -> bool:
    """Return whether a payload loads, and has the form in which it is stored, so that nothing was converted."""
    if not loads(schema, payload):
        return False
    return json.dumps(schema.dump(schema.load(payload)), default=float) == json.dumps(payload)


@pytest.mark.parametrize("field", [*EXACT, *LOOSE], ids=named)
def test_what_a_type_accepts_without_a_change_fits_its_schema(field: fields.Field[Any]) -> None:
    schema, validator = converted(field)
    refused = [one for one in SAMPLES if is_unchanged(schema, {"of": one}) and not validator.is_valid({"of": one})]
    assert refused == []
    assert any(validator.is_valid({"of": one}) for one in SAMPLES)


@pytest.mark.parametrize("field", EXACT, ids=named)
def test_what_fits_an_exact_schema_is_accepted(field: fields.Field[Any]) -> None:
    schema, validator = converted(field)
    assert [one for one in SAMPLES if validator.is_valid({"of": one}) and not loads(schema, {"of": one})] == []


def test_a_field_that_cannot_be_described_leaves_the_others_as_they_are() -> None:
    class Odd(Schema):
        """One odd field."""

        at = fields.DateTime(format="%Y")
        shown = fields.String(metadata={"example": date(2026, 1, 1), "description": "Shown."})
        today = fields.Date(load_default="today", required=False)
        n = whole(required=True)

    schema = payload_schema(JobType("declared", schema=Odd))
    assert schema["properties"] == {
        "at": {"type": "string"},
        "shown": {"type": "string", "description": "Shown."},
        "today": {"type": "string", "format": "date"},
        "n": {"type": "integer"},
    }
    assert schema["required"] == ["n"]
