"""What commands are given: times, and JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click


class Moment(click.ParamType):  # type: ignore[type-arg]  # older clicks take no parameter here
    """A time with an offset: without one, nobody could tell which hour was meant."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read ISO 8601."""
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            self.fail(f"{value!r} is no time with an offset, such as 2026-03-29T09:00:00+02:00", param, ctx)
        return moment


class JsonObject(click.ParamType):  # type: ignore[type-arg]
    """A payload."""

    name = "json"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Read a JSON object."""
        if isinstance(value, dict):
            return value
        try:
            payload = json.loads(str(value))
        except (ValueError, RecursionError) as error:
            self.fail(f"the payload is no JSON: {error}", param, ctx)
        if not isinstance(payload, dict):
            self.fail("the payload must be a JSON object, such as '{\"user_id\": 1}'", param, ctx)
        return payload
