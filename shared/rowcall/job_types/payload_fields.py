"""Which fields of a payload a schema would drop without a word, because marshmallow dumps less than it loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, fields


def undeclared(schema: Schema, loaded: object) -> dict[str, Any]:
    """Return the fields that `unknown = INCLUDE` has accepted, which dump() leaves out."""
    if not isinstance(loaded, Mapping):
        return {}
    declared = _attributes(schema)
    return {name: value for name, value in loaded.items() if name not in declared}


def refuse_mistaken(schema: Schema, payload: object) -> None:
    """Refuse undeclared fields that `unknown = INCLUDE` would take for declared ones, without checking them."""
    if schema.unknown != INCLUDE or not isinstance(payload, Mapping):
        return
    taken = {field.data_key or name for name, field in schema.load_fields.items()}
    wrong = [name for name in payload if name not in taken and name in _attributes(schema) | schema.fields.keys()]
    if wrong:
        raise ValidationError({name: ["Unknown field."] for name in wrong})


def _attributes(schema: Schema) -> set[str]:
    return {(field.attribute or name).partition(".")[0] for name, field in schema.fields.items()}


def dropped(schema: Schema, seen: frozenset[type[Schema]] = frozenset()) -> Iterator[str]:
    """Yield what is wrong with each field that a payload may have and a run would not get."""
    for name, field in schema.fields.items():
        if field.load_only:
            yield f"{name} is load_only"
        for nested in _nested(field):
            inner = nested.schema
            if (nested.unknown or inner.unknown) == INCLUDE:
                yield f"{name} includes unknown fields of a nested schema"
            if type(inner) not in seen:
                yield from (f"{name}.{what}" for what in dropped(inner, seen | {type(schema), type(inner)}))


def _nested(field: fields.Field[Any]) -> Iterator[fields.Nested]:
    if isinstance(field, fields.Nested):
        yield field
    elif isinstance(field, fields.List):
        yield from _nested(field.inner)
    elif isinstance(field, fields.Mapping) and field.value_field is not None:
        yield from _nested(field.value_field)
