"""The types of a definition's fields, and their error messages."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import marshmallow
from marshmallow import fields

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import duration
from rowcall.schedule.fields import shown

if TYPE_CHECKING:
    # marshmallow 3 does not have this name.
    from marshmallow.types import ErrorMessages

# The limit for request bodies; the payload itself is the second level of a body.
DEPTH = 32

LONGEST_SHOWN = 40

URL_CHARACTERS = 1000

NULL: ErrorMessages = {"null": "must have a value or be left out"}
TEXT: ErrorMessages = {**NULL, "invalid": "must be text"}
CHOICE: ErrorMessages = {**NULL, "unknown": "must be one of: {choices}"}
NUMBER: ErrorMessages = {**NULL, "invalid": "must be a whole number", "too_large": "must be a whole number"}


class Duration(fields.Field):  # type: ignore[type-arg]  # marshmallow 3 takes no parameter here
    """A duration: input in seconds or as text such as "90s", "15 minutes", "6h"; output in seconds."""

    default_error_messages = NULL

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> timedelta:
        try:
            # Code may declare a timedelta.
            return duration(value.total_seconds() if isinstance(value, timedelta) else value)
        except ScheduleInvalid as error:
            raise marshmallow.ValidationError(str(error)) from None

    def _serialize(self, value: timedelta | None, *_: Any, **__: Any) -> float | None:
        return None if value is None else value.total_seconds()


class Payload(fields.Dict):
    """A JSON object; the dates and times of TOML, YAML and Python become ISO 8601 text."""

    default_error_messages: ErrorMessages = {**NULL, "invalid": "must be a table of fields"}  # noqa: RUF012 - marshmallow reads it

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        plain: dict[Any, Any] = _plain(value, "payload", DEPTH - 1)
        return plain


class PingUrl(fields.String):
    """The URL of a service that waits for pings."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, *args, **kwargs)
        if len(text) > URL_CHARACTERS:
            raise marshmallow.ValidationError(f"must have at most {URL_CHARACTERS} characters")
        try:
            return str(HttpUrl.parse(text))
        except ValueError as error:
            raise marshmallow.ValidationError(f"must be {error}") from None


Text = partial(fields.String, error_messages=TEXT)
WholeNumber = partial(fields.Integer, strict=True, error_messages=NUMBER)


def choice(choices: type[StrEnum]) -> Callable[..., fields.Field[Any]]:
    """Return a field that accepts one of these words."""
    return partial(fields.Enum, choices, by_value=True, error_messages=CHOICE)


def declared(
    form: Callable[..., fields.Field[Any]],
    description: str,
    *,
    default: Any = None,
    option: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    """Return a dataclass field with its marshmallow field, for files, requests and code.

    A field that is left out gets its default.  `option` is the help text of its command-line option, if it has one.
    """
    sent = form(**{"load_default": default, "metadata": {"description": description, **(metadata or {})}, **more})
    known = {"sent": sent, "option": option}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=known)
    return dataclasses.field(default=default, metadata=known)


def refused_value(value: object) -> str:
    """Format a value for error messages."""
    if isinstance(value, str):
        return shown(value)
    try:
        text = "null" if value is None else repr(value)
    except (ValueError, RecursionError):
        # Python refuses to print numbers with thousands of digits, and values that nest too deeply.
        return "too large"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _plain(value: Any, path: str, levels: int) -> Any:
    """Convert the value to JSON-compatible data, so that it stays equal when it is read back from the table."""
    if isinstance(value, (Mapping, list, tuple)):
        if levels == 0:
            raise marshmallow.ValidationError(f"nests deeper than {DEPTH} levels: store the data, and send its id")
        if isinstance(value, Mapping):
            return {_key(key, path): _plain(inner, f"{path}.{key}", levels - 1) for key, inner in value.items()}
        return [_plain(inner, f"{path}[{number}]", levels - 1) for number, inner in enumerate(value)]
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise marshmallow.ValidationError(
        f"{path} is {refused_value(value)}, which JSON cannot represent: write text or a number"
    )


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return key
    raise marshmallow.ValidationError(f"{path} has the key {refused_value(key)}, which is not text: quote it")
