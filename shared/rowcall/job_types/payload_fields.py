"""The fields of a payload that a schema would drop, because marshmallow dumps less than it loads; paths of errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, fields

# Marshmallow's name for errors that concern an object as a whole.
WHOLE = "_schema"


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


def at_values(schema: Schema, messages: Any) -> Any:
    """Return marshmallow's messages by the path of each value, without the levels that it adds."""
    if not isinstance(messages, Mapping):
        return messages
    fields_of = {field.data_key or name: field for name, field in schema.fields.items()}
    return {name: _at_value(fields_of.get(name), said) for name, said in messages.items()}


def _at_value(field: fields.Field[Any] | None, said: Any) -> Any:
    """Return the messages of one field: those of a mapping have a level `key` or `value`, those of a Pluck its name."""
    if not isinstance(said, Mapping):
        return said
    if isinstance(field, fields.Nested):
        if field.many and all(isinstance(place, int) for place in said):
            return {place: _of_schema(field, inner) for place, inner in said.items()}
        return _of_schema(field, said)
    if isinstance(field, fields.List):
        return {place: _at_value(field.inner, inner) for place, inner in said.items()}
    if isinstance(field, fields.Tuple):
        inner = dict(enumerate(field.tuple_fields))
        return {place: _at_value(inner.get(place), one) for place, one in said.items()}
    if isinstance(field, fields.Mapping):
        return {name: _of_member(field, inner) for name, inner in said.items()}
    return said


def _of_schema(field: fields.Nested, said: Any) -> Any:
    found = at_values(field.schema, said)
    if isinstance(field, fields.Pluck) and isinstance(found, Mapping):
        [*inner] = found.values()
        return inner[0] if len(inner) == 1 else found
    return found


def _of_member(field: fields.Mapping[Any], said: Any) -> Any:
    if not isinstance(said, Mapping) or not said or said.keys() - {"key", "value"}:
        return said
    of_value = _at_value(field.value_field, said.get("value", []))
    if "key" not in said:
        return of_value
    return {WHOLE: said["key"], **of_value} if isinstance(of_value, Mapping) else [*said["key"], *of_value]


def _nested(field: fields.Field[Any]) -> Iterator[fields.Nested]:
    if isinstance(field, fields.Nested):
        yield field
    elif isinstance(field, fields.List):
        yield from _nested(field.inner)
    elif isinstance(field, fields.Tuple):
        for inner in field.tuple_fields:
            yield from _nested(inner)
    elif isinstance(field, fields.Mapping) and field.value_field is not None:
        yield from _nested(field.value_field)
