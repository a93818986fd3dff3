"""Plain payloads are checked without marshmallow, and every payload is stored or refused as marshmallow does it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import (
    EXCLUDE,
    INCLUDE,
    Schema,
    ValidationError,
    fields,
    post_load,
    pre_dump,
    validate,
    validates_schema,
)

from rowcall import JobType
from rowcall.base.errors import RunInvalid
from rowcall.job_types.plain import PlainPayloads

VALUES = (0, 1, -7, 2**70, True, False, None, "", "a", "7", "yes", 0.5, 1.0, math.nan, math.inf, [1], {"a": 1}, b"a")


class Order(Schema):
    order_id = fields.Integer(required=True, validate=validate.Range(1))
    strict = fields.Integer(strict=True)
    name = fields.String(validate=[validate.Length(1, 3), validate.Regexp("[a-z]")])
    urgent = fields.Boolean()
    weight = fields.Float(allow_none=True)
    kind = fields.String(load_default="new")
    note = fields.String(load_default=None)
    day = fields.Date()


class WithFunction(Schema):
    number = fields.Integer(load_default=lambda: 7)


class WithOddDefault(Schema):
    odd = fields.String(load_default=7)


class WithDefaults(Schema):
    number = fields.Integer(required=True)
    kind = fields.String(load_default="new")
    note = fields.String(load_default=None)
    share = fields.Float(load_default=0.5)


class Nullable(Schema):
    number = fields.Integer(allow_none=True)
    words = fields.List(fields.String())


class WithDumpDefault(Schema):
    number = fields.Integer(dump_default=7)


class Renamed(Schema):
    number = fields.Integer(data_key="no")
    other = fields.Integer(attribute="another")
    text = fields.Integer(as_string=True)


class OddBoolean(Schema):
    flag = fields.Boolean(truthy={"on"}, falsy={"off"})


class Own(fields.Integer):
    def _serialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return (value or 0) + 1


def is_even(value: int) -> None:
    if value % 2:
        raise ValidationError("must be even")


class OwnParts(Schema):
    own = Own()
    even = fields.Integer(validate=is_even)


class Hooked(Schema):
    number = fields.Integer()

    @post_load
    def double(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value * 2 for name, value in loaded.items()}


class Dumped(Schema):
    number = fields.Integer()

    @pre_dump
    def negate(self, loaded: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: -value for name, value in loaded.items()}


class Refusing(Schema):
    number = fields.Integer()

    @validates_schema
    def refuse(self, loaded: dict[str, Any], **_: Any) -> None:
        if loaded.get("number") == 1:
            raise ValidationError("is 1")


class Inheriting(Refusing):
    name = fields.String()


class Including(Schema):
    class Meta:
        unknown = INCLUDE

    number = fields.Integer()


class Excluding(Schema):
    class Meta:
        unknown = EXCLUDE

    number = fields.Integer()


SCHEMAS = (
    *(
        Order,
        WithFunction,
        WithOddDefault,
        WithDefaults,
        Nullable,
        WithDumpDefault,
        Renamed,
        OddBoolean,
        OwnParts,
        Hooked,
        Dumped,
        Refusing,
        Inheriting,
    ),
    *(Including, Excluding),
)
NAMES = (
    "order_id",
    "strict",
    "name",
    "urgent",
    "weight",
    "kind",
    "day",
    "number",
    "words",
    "no",
    "other",
    "even",
    "own",
)


def outcome(job_type: JobType, payload: object) -> Any:
    """Return the checked payload, or the complaint."""
    try:
        checked = job_type.checked(payload)
    except RunInvalid as error:
        return str(error)
    return {name: (type(value), value) for name, value in checked.items()}


def by_marshmallow(job_type: JobType) -> JobType:
    """Return the same type without plain payloads."""
    slow = JobType(job_type.name, schema=job_type.schema)
    vars(slow)["_plain"] = None
    return slow


@pytest.mark.parametrize("schema", SCHEMAS)
@given(payload=st.dictionaries(st.sampled_from((*NAMES, "text", "flag", "odd")), st.sampled_from(VALUES)))
def test_every_payload_is_stored_or_refused_as_by_marshmallow(schema: type[Schema], payload: dict[str, Any]) -> None:
    job_type = JobType("order", schema=schema)
    assert outcome(job_type, payload) == outcome(by_marshmallow(job_type), payload)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_value_of_every_field_is_stored_or_refused_as_by_marshmallow(schema: type[Schema], value: Any) -> None:
    job_type = JobType("order", schema=schema)
    for name in schema().fields:
        for payload in ({name: value}, {"order_id": 1, name: value}):
            assert outcome(job_type, payload) == outcome(by_marshmallow(job_type), payload)


@pytest.mark.parametrize("payload", [[], "a", None, 1])
def test_what_is_no_object_is_refused_by_its_type(payload: object) -> None:
    with pytest.raises(RunInvalid, match="must be an object"):
        JobType("order", schema=Nullable).checked(payload)


def test_a_payload_of_the_declared_types_is_plain_and_copied() -> None:
    plain = PlainPayloads.of(Nullable())
    assert plain is not None
    assert plain.completed({"number": 1}) == {"number": 1}
    assert plain.completed({}) == {}
    payload = {"number": 1}
    assert JobType("order", schema=Nullable).checked(payload) is not payload


@pytest.mark.parametrize("schema", [Hooked, Dumped, Refusing, Inheriting, Including, Excluding])
def test_schemas_that_change_any_payload_or_have_code_have_no_plain_payloads(schema: type[Schema]) -> None:
    assert PlainPayloads.of(schema()) is None


def test_a_plain_payload_gets_the_defaults_of_plain_fields() -> None:
    class Defaults(Schema):
        number = fields.Integer(required=True)
        kind = fields.String(load_default="new")

    plain = PlainPayloads.of(Defaults())
    assert plain is not None
    assert plain.completed({"number": 1}) == {"kind": "new", "number": 1}
    assert plain.completed({"kind": "old"}) is None
