"""Parameter types of commands: times and JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click

from rowcall.base.errors import ScheduleInvalid
from rowcall.cli.session import command_transaction
from rowcall.definitions import clock
from rowcall.schedule import moment


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


class JsonObject(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes no parameter here
    """A JSON object, such as a payload."""

    name = "json"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Parse the JSON object."""
        if isinstance(value, dict):
            return value
        try:
            payload = json.loads(str(value))
        except (ValueError, RecursionError) as error:
            self.fail(f"the payload is not JSON: {error}", param, ctx)
        if not isinstance(payload, dict):
            self.fail("the payload must be a JSON object, such as '{\"user_id\": 1}'", param, ctx)
        return payload
