"""Parameter types of commands: times and JSON."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from math import isnan
from typing import Any
from zoneinfo import ZoneInfo

import click

from rowcall.base.errors import ScheduleInvalid
from rowcall.cli.session import command_transaction
from rowcall.definitions import clock
from rowcall.schedule import duration, moment


class Moment(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """A time in ISO 8601 or in words, relative to the database's clock; in UTC if it has no offset."""

    name = "time"

    def __init__(self, past: bool = False) -> None:
        self._past = past

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse the time."""
        with command_transaction() as connection:
            now = clock(connection)
        try:
            return moment(str(value), now, ZoneInfo("UTC"), self._past)
        except ScheduleInvalid as error:
            self.fail(str(error), param, ctx)


class Duration(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """A duration; a number without a unit is refused, except where an option takes seconds."""

    name = "duration"

    def __init__(self, example: str, in_seconds: bool = False) -> None:
        self._example, self._in_seconds = example, in_seconds

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parse the duration."""
        if isinstance(value, timedelta):
            return value
        text = str(value)
        try:
            is_bare = text.strip().isdigit()
            length = duration(int(text) if is_bare else text) if self._in_seconds or not is_bare else None
        except (ScheduleInvalid, ValueError):  # Python refuses to parse numbers with thousands of digits
            length = None
        if length is None:
            self.fail(f"{text!r} is not a duration: write {self._example}", param, ctx)
        return length


class Seconds(click.FloatRange):
    """A number of seconds, which may be infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse the number; click lets NaN through, because it is in no order with the limits."""
        seconds: float = super().convert(value, param, ctx)
        if isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


class JsonObject(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """A JSON object, such as a payload."""

    name = "json"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Parse the JSON object."""
        if isinstance(value, dict):
            return value
        try:
            payload = json.loads(str(value))
        except RecursionError:
            self.fail("the payload is nested too deeply", param, ctx)
        except json.JSONDecodeError as error:
            self.fail(f"the payload is not JSON: {error}", param, ctx)
        except ValueError:
            self.fail("the payload has a number with too many digits: send it as text", param, ctx)
        if not isinstance(payload, dict):
            self.fail("the payload must be a JSON object, such as '{\"user_id\": 1}'", param, ctx)
        return payload


class KeyId(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """The id of an API key.  A name does not identify a key: a rotated key and its replacement share one."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the id."""
        try:
            return int(str(value))
        except ValueError:
            self.fail(f"{value!r} is not the id of a key: `rowcall keys list` shows the ids", param, ctx)


class Most(click.IntRange):
    """How many runs may run at a time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number; say which ones are valid."""
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            valid = f"an integer from {self.min} to {self.max}, or --none for no limit"
            self.fail(f"{value!r} is not valid: write {valid}", param, ctx)
        return number
