"""The fields of a definition as they are sent: what each of them takes, and the sentence that refuses it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, cast

import marshmallow
from marshmallow import Schema, fields, validate

from rowcall.base.errors import ScheduleInvalid
from rowcall.schedule import CatchUp, MissingTime, Overlap, RepeatedTime, duration
from rowcall.schedule.fields import shown

if TYPE_CHECKING:
    # Marshmallow 3 has no such name.
    from marshmallow.types import ErrorMessages

# As deep as a request's body may be; the payload's own table is the second level of it.
DEEPEST = 32

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
        plain: dict[Any, Any] = _plain(value, "payload", DEEPEST - 1)
        return plain


class ContentSchema(Schema):
    """What a definition says should exist."""

    job_type = fields.String(
        required=True,
        error_messages={**TEXT, "required": "is missing: name a job type, such as noop"},
        metadata={"example": "cleanup_nightly"},
    )
    payload = Payload(
        load_default=dict,
        metadata={
            "description": "What each run is given; {date}, {date-1}, {week} and others name its nominal time.",
            "example": {"day": "{date-1}"},
        },
    )
    schedule = fields.String(
        load_default=None,
        error_messages=TEXT,
        metadata={
            "description": "Five fields of cron, or a name such as @daily; null: only run by hand.",
            "example": "17 3 * * *",
        },
    )
    time_zone = fields.String(
        load_default="UTC", error_messages=TEXT, metadata={"description": "An IANA name, such as Europe/Berlin."}
    )
    catch_up = fields.Enum(
        CatchUp,
        by_value=True,
        load_default=CatchUp.LATEST,
        error_messages=CHOICE,
        metadata={"description": "Which of the times that came while nothing was awake still run."},
    )
    max_lateness = Duration(
        load_default=None,
        metadata={"type": ["number", "string"], "description": "How late a time may still run: seconds, or as 6h."},
    )
    overlap = fields.Enum(
        Overlap,
        by_value=True,
        load_default=None,
        error_messages=CHOICE,
        metadata={"description": "Whether a time runs while an earlier run waits or works; null: as catch_up needs."},
    )
    jitter = Duration(
        load_default=timedelta(0),
        metadata={"type": ["number", "string"], "description": "Runs begin up to so much later, always by the same."},
    )
    missing_time = fields.Enum(
        MissingTime,
        by_value=True,
        load_default=MissingTime.AFTER,
        error_messages=CHOICE,
        metadata={"description": "What becomes of a wall time that does not exist, in spring."},
    )
    repeated_time = fields.Enum(
        RepeatedTime,
        by_value=True,
        load_default=RepeatedTime.ONCE,
        error_messages=CHOICE,
        metadata={"description": "What becomes of a wall time that comes twice, in autumn."},
    )
    queue = fields.String(
        load_default=None, error_messages=TEXT, metadata={"description": "Of its runs; null: the type's."}
    )
    priority = fields.Integer(
        strict=True,
        load_default=0,
        error_messages=NUMBER,
        metadata={"description": "Of its runs; a lower number is more urgent."},
    )
    max_attempts = fields.Integer(
        strict=True,
        load_default=None,
        validate=validate.Range(1, 1000, error="must be a whole number from 1 to 1000"),
        error_messages=NUMBER,
        metadata={"description": "Of its runs; null: the type's."},
    )


FIELDS = tuple(ContentSchema().fields)
DURATIONS = tuple(name for name, field in ContentSchema().fields.items() if isinstance(field, Duration))


def loaded(raw: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, object]]:
    """The fields that can be used, and for each of the others what is wrong with it."""
    try:
        usable: dict[str, Any] = ContentSchema().load(raw)
    except marshmallow.ValidationError as error:
        usable = cast(dict[str, Any], error.valid_data)
        return usable, {str(name): _sentence(name, told[0], raw) for name, told in error.messages_dict.items()}
    return usable, {}


def _sentence(name: str, message: str, raw: Mapping[str, Any]) -> str:
    if name not in FIELDS:
        return f"is no field of a definition: there are {', '.join(FIELDS)}"
    return f"is {_told(raw[name])} and {message}" if message.startswith("must ") else message


def _told(value: object) -> str:
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
            raise marshmallow.ValidationError(f"nests deeper than {DEEPEST} levels: store the data, and send its id")
        if isinstance(value, Mapping):
            return {_key(key, path): _plain(inner, f"{path}.{key}", levels - 1) for key, inner in value.items()}
        return [_plain(inner, f"{path}[{number}]", levels - 1) for number, inner in enumerate(value)]
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise marshmallow.ValidationError(f"{path} is {_told(value)}, which JSON cannot hold: write text or a number")


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return key
    raise marshmallow.ValidationError(f"{path} has the name {_told(key)}, which is no text: write it in quotes")
