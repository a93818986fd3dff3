"""What a field of a definition takes, and the sentences that refuse what it does not."""

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

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import duration
from rowcall.schedule.fields import shown

if TYPE_CHECKING:
    # Marshmallow 3 has no such name.
    from marshmallow.types import ErrorMessages

# As deep as a request's body may be; the payload's own table is the second level of it.
DEPTH = 32

LONGEST_SHOWN = 40

NULL: ErrorMessages = {"null": "must be left out or hold a value"}
TEXT: ErrorMessages = {**NULL, "invalid": "must be text"}
CHOICE: ErrorMessages = {**NULL, "unknown": "must be one of: {choices}"}
NUMBER: ErrorMessages = {**NULL, "invalid": "must be a whole number", "too_large": "must be a whole number"}


class Duration(fields.Field):  # type: ignore[type-arg]  # marshmallow 3 takes no parameter here
    """Seconds, or words such as "90s", "15 minutes", "6h"; seconds on the way out."""

    default_error_messages = NULL

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> timedelta:
        try:
            # Code may hold what it means: timedelta(minutes=15).
            return duration(value.total_seconds() if isinstance(value, timedelta) else value)
        except ScheduleInvalid as error:
            raise marshmallow.ValidationError(str(error)) from None

    def _serialize(self, value: timedelta | None, *_: Any, **__: Any) -> float | None:
        return None if value is None else value.total_seconds()


class Payload(fields.Dict):
    """An object of what JSON holds; dates and times, which TOML, YAML and Python have besides, become ISO 8601."""

    default_error_messages: ErrorMessages = {**NULL, "invalid": "must be a table of fields"}  # noqa: RUF012 - its hook

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        plain: dict[Any, Any] = _plain(value, "payload", DEPTH - 1)
        return plain


Text = partial(fields.String, error_messages=TEXT)
WholeNumber = partial(fields.Integer, strict=True, error_messages=NUMBER)


def choice(choices: type[StrEnum]) -> Callable[..., fields.Field[Any]]:
    """One word out of these."""
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
    """A field of a dataclass, with the form in which files, requests and code send it.

    A field that is left out has its default.  `option` is the help of the command line's option, where there is one.
    """
    sent = form(**{"load_default": default, "metadata": {"description": description, **(metadata or {})}, **more})
    known = {"sent": sent, "option": option}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=known)
    return dataclasses.field(default=default, metadata=known)


def refused_value(value: object) -> str:
    """A value as error messages show it."""
    if isinstance(value, str):
        return shown(value)
    try:
        text = "null" if value is None else repr(value)
    except (ValueError, RecursionError):
        # Python writes out no number of thousands of digits, and nothing that nests as deep.
        return "too large"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _plain(value: Any, path: str, levels: int) -> Any:
    """The value as JSON holds it, so that it stays equal to what is read back from the table."""
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
        f"{path} is {refused_value(value)}, which JSON cannot hold: write text or a number"
    )


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return key
    raise marshmallow.ValidationError(f"{path} has the name {refused_value(key)}, which is not text: quote it")
