"""The content of a definition: its fields as they are sent, and what they must be to be kept.

Files, requests and code all come through `checked`; what it lets through can be enqueued when its time comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import marshmallow
from marshmallow import Schema, validate

from shared.database import Row
from shared.errors import DefinitionInvalid, JobTypeUnknown, RunInvalid, ScheduleInvalid
from shared.job_types import Catalogue, JobType
from shared.queue.enqueue import Prepared, check_options, prepared
from shared.schedule import CatchUp, MissingTime, Overlap, RepeatedTime, Rule, Times, duration, names_time, rendered

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")

# Any moment serves to try a payload that names its nominal time.
SAMPLE = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Duration(marshmallow.fields.Field[timedelta]):
    """Seconds, or words such as "90s", "15 minutes", "6h"; seconds on the way out."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> timedelta:
        try:
            return duration(value)
        except ScheduleInvalid as error:
            raise marshmallow.ValidationError(str(error)) from None

    def _serialize(self, value: timedelta | None, *_: Any, **__: Any) -> float | None:
        return None if value is None else value.total_seconds()


class ContentSchema(Schema):
    """What a definition says should exist."""

    error_messages: dict[str, str] = {"unknown": "is no field of a definition"}  # noqa: RUF012 - marshmallow's hook

    job_type = marshmallow.fields.String(required=True)
    payload = marshmallow.fields.Dict(keys=marshmallow.fields.String(), load_default=dict)
    schedule = marshmallow.fields.String(load_default=None, allow_none=True)
    time_zone = marshmallow.fields.String(load_default="UTC")
    catch_up = marshmallow.fields.Enum(CatchUp, by_value=True, load_default=CatchUp.LATEST)
    max_lateness = Duration(load_default=None, allow_none=True)
    overlap = marshmallow.fields.Enum(Overlap, by_value=True, load_default=None, allow_none=True)
    jitter = Duration(load_default=timedelta(0))
    missing_time = marshmallow.fields.Enum(MissingTime, by_value=True, load_default=MissingTime.AFTER)
    repeated_time = marshmallow.fields.Enum(RepeatedTime, by_value=True, load_default=RepeatedTime.ONCE)
    queue = marshmallow.fields.String(load_default=None, allow_none=True)
    priority = marshmallow.fields.Integer(strict=True, load_default=0)
    max_attempts = marshmallow.fields.Integer(
        strict=True, load_default=None, allow_none=True, validate=validate.Range(1, 1000)
    )


@dataclass(frozen=True)
class Content:
    """A definition's content, checked."""

    job_type: str
    payload: dict[str, Any] = field(default_factory=dict)
    schedule: str | None = None
    time_zone: str = "UTC"
    catch_up: CatchUp = CatchUp.LATEST
    max_lateness: timedelta | None = None
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)
    missing_time: MissingTime = MissingTime.AFTER
    repeated_time: RepeatedTime = RepeatedTime.ONCE
    queue: str | None = None
    priority: int = 0
    max_attempts: int | None = None

    @classmethod
    def of(cls, row: Row) -> Content:
        """The content of a row of job_definitions."""
        content = cls(**{spec.name: row[spec.name] for spec in fields(cls)})
        words = {
            "catch_up": CatchUp(content.catch_up),
            "overlap": Overlap(content.overlap),
            "missing_time": MissingTime(content.missing_time),
            "repeated_time": RepeatedTime(content.repeated_time),
        }
        return cls(**{**vars(content), **words})

    @property
    def zone(self) -> ZoneInfo:
        """Where its wall clock hangs."""
        return ZoneInfo(self.time_zone)

    def times(self) -> Times | None:
        """Its nominal times; None where only people run it."""
        if self.schedule is None:
            return None
        return Times.of(self.schedule, self.time_zone, self.missing_time, self.repeated_time)

    def rule(self, name: str, paused: bool) -> Rule | None:
        """What decides about its nominal times."""
        times = self.times()
        if times is None:
            return None
        return Rule(times, self.catch_up, self.max_lateness, self.overlap, self.jitter, name, paused)

    def options(self, kind: JobType) -> dict[str, Any]:
        """The columns that all its runs share."""
        return {
            "job_type": kind.name,
            "queue": self.queue or kind.queue,
            "priority": self.priority,
            "max_attempts": self.max_attempts or kind.max_attempts,
        }

    def prepared(self, kind: JobType, nominal: datetime) -> Prepared:
        """The run of one nominal time, as the queue takes it.

        A payload that names the time is a business fact of that time, so the type's natural key holds for it.  One that
        does not is the same each time, and its natural key would let only the first occurrence through.
        """
        options = {"queue": self.queue, "priority": self.priority, "max_attempts": self.max_attempts}
        payload = rendered(self.payload, nominal, self.zone)
        return prepared(kind, payload, options, natural=names_time(self.payload))


def told(content: Content) -> dict[str, Any]:
    """The content as it is sent, for people and programs."""
    sent: dict[str, Any] = ContentSchema().dump(content)
    return sent


def checked(name: str, raw: Mapping[str, Any], catalogue: Catalogue) -> Content:
    """The content as it may be kept, or DefinitionInvalid with what is wrong in each field."""
    try:
        loaded = ContentSchema().load(raw)
    except marshmallow.ValidationError as error:
        raise DefinitionInvalid(name, dict(error.messages_dict)) from None
    return accepted(name, loaded, catalogue)


def accepted(name: str, loaded: dict[str, Any], catalogue: Catalogue) -> Content:
    """The same for what has come through ContentSchema already."""
    if not NAME.fullmatch(name):
        raise DefinitionInvalid(
            name, {"name": "must be lower-case letters, digits, and _ . - between, such as nightly"}
        )
    if loaded["overlap"] is None:
        # To catch all up one after another, each must be let in while the one before it still waits.
        loaded["overlap"] = Overlap.ALLOW if loaded["catch_up"] is CatchUp.ALL else Overlap.SKIP
    content = Content(**loaded)
    wrong = _wrong(content, catalogue)
    if wrong:
        raise DefinitionInvalid(name, wrong)
    return content


def _wrong(content: Content, catalogue: Catalogue) -> dict[str, object]:
    """Field -> what is wrong with it, beyond what one field alone can tell."""
    wrong: dict[str, object] = {}
    try:
        Times.of(content.schedule or "@daily", content.time_zone, content.missing_time, content.repeated_time)
    except ScheduleInvalid as error:
        wrong[error.field or "schedule"] = str(error)
    try:
        kind = catalogue[content.job_type]
    except JobTypeUnknown as error:
        return {**wrong, "job_type": str(error)}
    if "time_zone" in wrong:
        return wrong
    try:
        check_options(kind, vars(content))
        content.prepared(kind, SAMPLE)
    except RunInvalid as error:
        wrong.update(error.fields)
    except ScheduleInvalid as error:
        wrong["payload"] = str(error)
    return wrong
