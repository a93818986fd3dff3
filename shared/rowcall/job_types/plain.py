"""Plain payloads: those that a schema returns as they are or with defaults, recognized without marshmallow.

Marshmallow loads and dumps a payload of one number in about 30 microseconds, as long as PostgreSQL needs to insert the
run.  Most payloads are a few numbers and strings of exactly the declared types, to which loading and dumping only add
defaults.  Everything else is left to marshmallow: other types, nested schemas, an app's own code, and all errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from marshmallow import RAISE, Schema, fields, missing, validate

# Field class -> the type of the values that fields of exactly this class return unchanged.
TYPES: Mapping[type, type] = {fields.Integer: int, fields.String: str, fields.Boolean: bool, fields.Float: float}

# Validators that only look at the value.
VALIDATORS: frozenset[type] = frozenset(
    {validate.Range, validate.Length, validate.OneOf, validate.NoneOf, validate.Regexp}
)

# What a schema class without code of its own consists of, in all versions of Python.
PARTS = frozenset({"Meta", "opts", "__annotate__", "__annotate_func__"})

# Marshmallow's settings of a field that change values or names, and the values that they have unless they are set.
CHANGES = ("load_only", "dump_only", "attribute", "data_key", "as_string", "pre_load", "post_load")
UNSET: tuple[object, ...] = (None, False, (), [])


class Plain(NamedTuple):
    """The type of a field's values, and its validators."""

    kind: type
    validators: Sequence[Callable[[Any], Any]]


@dataclass(frozen=True)
class PlainPayloads:
    """The plain payloads of a schema: each must have the `required` fields, and gets the `defaults` that it lacks."""

    fields: Mapping[str, Plain]
    required: frozenset[str]
    defaults: Mapping[str, Any]

    @classmethod
    def of(cls, schema: Schema) -> PlainPayloads | None:
        """Return the plain payloads of this schema, or None if it may change any payload."""
        if _has_code(type(schema)) or schema.unknown != RAISE or schema.partial or schema.dict_class is not dict:
            return None
        found = {name: _plain(field) for name, field in schema.fields.items()}
        plain = {name: one for name, one in found.items() if one is not None}
        defaults = {name: schema.fields[name].load_default for name in plain if _has_default(schema.fields[name])}
        # A plain payload may omit a field that is not plain, unless that field is required or has a default.
        filled = {name for name, field in schema.fields.items() if _is_filled(field)}
        required = frozenset(filled - defaults.keys())
        return cls(plain, required, defaults) if required <= plain.keys() else None

    def completed(self, payload: object) -> dict[str, Any] | None:
        """Return this payload with defaults, or None if it is not plain."""
        return {**self.defaults, **payload} if type(payload) is dict and self._have(payload) else None

    def _have(self, payload: Mapping[str, Any]) -> bool:
        for name, value in payload.items():
            plain = self.fields.get(name)
            if plain is None or type(value) is not plain.kind:
                return False
            if type(value) is float and not isfinite(value):
                return False
            for validator in plain.validators:
                try:
                    validator(value)
                except Exception:  # Marshmallow will report the error.
                    return False
        return self.required <= payload.keys()


def _has_code(schema: type[Schema]) -> bool:
    """Whether the class or its bases have hooks, or anything else that marshmallow may call."""
    own = [kind for kind in schema.__mro__ if kind not in Schema.__mro__]
    return any(
        name not in PARTS and (callable(value) or isinstance(value, property | classmethod))
        for kind in own
        for name, value in vars(kind).items()
    )


def _plain(field: fields.Field[Any]) -> Plain | None:
    kind = TYPES.get(type(field))
    if kind is None or any(getattr(field, setting, None) not in UNSET for setting in CHANGES):
        return None
    if isinstance(field, fields.Boolean) and not (True in field.truthy and False in field.falsy):
        return None
    if any(type(validator) not in VALIDATORS for validator in field.validators):
        return None
    return Plain(kind, field.validators)


def _has_default(field: fields.Field[Any]) -> bool:
    """Whether a payload without the field gets a default that dumping does not change."""
    return field.dump_default is missing and type(field.load_default) in (TYPES[type(field)], type(None))


def _is_filled(field: fields.Field[Any]) -> bool:
    """Whether a payload without the field is refused, or gets a default."""
    return field.required or field.load_default is not missing or field.dump_default is not missing
