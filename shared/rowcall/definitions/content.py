"""The content of a definition: each field is declared here, once.

What files, requests and code may send, the options of `rowcall definitions preview`, and the columns of job_definitions
that a change writes all follow from this class.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import fields, validate

from rowcall.base.database import Row
from rowcall.definitions.fields import TEXT, Duration, Payload, Text, WholeNumber, choice, declared
from rowcall.job_types import JobType
from rowcall.queue.enqueue import Prepared, prepared
from rowcall.schedule import CatchUp, Overlap, Rule, Times, names_time, rendered, zone_named

# How OpenAPI calls what Duration reads.
SECONDS_OR_WORDS = {"type": ["number", "string"]}


@dataclass(frozen=True)
class Content:
    """A definition's content, checked."""

    job_type: str = dataclasses.field(
        metadata={
            "sent": fields.String(
                required=True,
                error_messages={**TEXT, "required": "is missing: name a job type, such as noop"},
                metadata={"example": "cleanup_nightly"},
            )
        }
    )
    payload: dict[str, Any] = declared(
        Payload,
        "The payload of each run; {date}, {date-1}, {week} and others stand for its nominal time.",
        default=dict,
        metadata={"example": {"day": "{date-1}"}},
    )
    schedule: str | None = declared(
        Text,
        "Five cron fields, or a name such as @daily; null: only by hand.",
        option="Preview this expression instead of NAME's.",
        metadata={"example": "17 3 * * *"},
    )
    time_zone: str = declared(
        Text,
        "An IANA name, such as Europe/Berlin.",
        default="UTC",
        option="Its zone.  [default: NAME's, else UTC]",
    )
    catch_up: CatchUp = declared(
        choice(CatchUp),
        "Which of the times missed in an outage still run.",
        default=CatchUp.LATEST,
        option="What happens to missed times.",
    )
    max_lateness: timedelta | None = declared(
        Duration,
        "How late a time can still run: seconds, or such as 6h.",
        option="How late a missed time may still run, such as 6h.",
        metadata=SECONDS_OR_WORDS,
    )
    overlap: Overlap = declared(
        choice(Overlap),
        "Whether a time runs while an earlier run is unfinished; null: as catch_up needs.",
        default=Overlap.SKIP,
        load_default=None,
        option="Whether runs may overlap.",
    )
    jitter: timedelta = declared(
        Duration,
        "Delays each run by a fixed part of this time, to spread the load.",
        default=timedelta(0),
        option="How far runs are spread, such as 5m.",
        metadata=SECONDS_OR_WORDS,
    )
    queue: str | None = declared(Text, "The queue of its runs; null: the type's.")
    priority: int = declared(WholeNumber, "The priority of its runs; a lower number is more urgent.", default=0)
    max_attempts: int | None = declared(
        WholeNumber,
        "The attempts that its runs may take; null: the type's.",
        validate=validate.Range(1, 1000, error="must be a whole number from 1 to 1000"),
    )

    @classmethod
    def of(cls, row: Row) -> Content:
        """The content of a row of job_definitions."""
        return cls(**{name: _value_of(sent, row[name]) for name, sent in SENT.items()})

    @property
    def zone(self) -> ZoneInfo:
        """The zone of its wall clock."""
        return zone_named(self.time_zone)

    def times(self) -> Times | None:
        """Its nominal times; None where only people run it."""
        return Times.of(self.schedule, self.time_zone) if self.schedule is not None else None

    def next_after(self, instant: datetime) -> datetime | None:
        """Its first nominal time later than this instant, if there is one."""
        times = self.times()
        return times.next_after(instant) if times else None

    def rule(self, name: str, paused: bool) -> Rule | None:
        """The rule that decides its nominal times."""
        times = self.times()
        if times is None:
            return None
        return Rule(times, self.catch_up, self.max_lateness, self.overlap, self.jitter, name, paused)

    def options(self, job_type: JobType) -> dict[str, Any]:
        """The columns that all its runs share."""
        return {
            "job_type": job_type.name,
            "queue": self.queue or job_type.queue,
            "priority": self.priority,
            "max_attempts": self.max_attempts or job_type.max_attempts,
            "unique_mode": job_type.unique,
        }

    def prepared(self, job_type: JobType, nominal: datetime) -> Prepared:
        """The run of one nominal time, as the queue takes it.

        A payload that names the time is a business fact of that time, so the type's natural key holds for it.  One that
        does not is the same each time, and its natural key would let only the first occurrence through.
        """
        # The options of a request for the same run, so that it is a replay of this one and no conflict.
        options = {"run_at": None, "queue": self.queue, "priority": self.priority, "max_attempts": self.max_attempts}
        payload = rendered(self.payload, nominal, self.zone)
        return prepared(job_type, payload, options, natural=names_time(self.payload))


def _value_of(sent: fields.Field[Any], value: Any) -> Any:
    """A column's value: the words of a choice are read as that choice."""
    return sent.enum(value) if isinstance(sent, fields.Enum) else value


# Name -> how it is sent; and name -> the help of its option.
SENT: dict[str, fields.Field[Any]] = {spec.name: spec.metadata["sent"] for spec in dataclasses.fields(Content)}
OPTIONS: dict[str, str] = {
    spec.name: spec.metadata["option"] for spec in dataclasses.fields(Content) if spec.metadata.get("option")
}

# All columns of the content, as an UPDATE of job_definitions sets them.
COLUMNS = ",\n    ".join(f"{name} = %({name})s" for name in SENT)
