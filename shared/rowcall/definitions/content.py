"""The content of a definition; each field is declared here, once.

The schema of files, requests and code, the options of `rowcall definitions preview`, and the columns that a change
writes to job_definitions are all derived from this class.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import fields, validate

from rowcall.base.database import Row
from rowcall.definitions.fields import TEXT, Duration, Payload, PingUrl, Text, WholeNumber, choice, declared
from rowcall.job_types import JobType
from rowcall.queue.enqueue import Prepared, prepared
from rowcall.schedule import CatchUp, Overlap, Rule, Times, names_time, rendered, zone_named

# OpenAPI's description of a Duration.
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
        "The payload of each run; {date}, {date-1}, {week} and similar placeholders are replaced with values that"
        " are derived from its nominal time.",
        default=dict,
        metadata={"example": {"day": "{date-1}"}},
    )
    schedule: str | None = declared(
        Text,
        "Five cron fields, or a name such as @daily; null: no schedule.",
        option="Preview this expression instead of NAME's.",
        metadata={"example": "17 3 * * *"},
    )
    time_zone: str = declared(
        Text,
        "An IANA name, such as Europe/Berlin.",
        default="UTC",
        option="The schedule's time zone.  [default: NAME's, else UTC]",
    )
    catch_up: CatchUp = declared(
        choice(CatchUp),
        "Which of the nominal times that passed during an outage still get a run.",
        default=CatchUp.LATEST,
        option="Which of the nominal times that passed during an outage still get a run.",
    )
    max_lateness: timedelta | None = declared(
        Duration,
        "How long after its nominal time a run may be enqueued: in seconds, or as text such as 6h.",
        option="How long after its nominal time a run may be enqueued, such as 6h.",
        metadata=SECONDS_OR_WORDS,
    )
    overlap: Overlap = declared(
        choice(Overlap),
        "Whether to enqueue a run while an earlier run is unfinished; null: allow if catch_up is all, else skip.",
        default=Overlap.SKIP,
        load_default=None,
        option="Whether runs may overlap.",
    )
    jitter: timedelta = declared(
        Duration,
        "The maximum delay of the runs; each definition has a fixed delay up to this, to spread the load.",
        default=timedelta(0),
        option="How far to spread runs, such as 5m.",
        metadata=SECONDS_OR_WORDS,
    )
    queue: str | None = declared(Text, "The queue of the runs; null: the type's.")
    priority: int = declared(WholeNumber, "The priority of the runs; a lower number is more urgent.", default=0)
    max_attempts: int | None = declared(
        WholeNumber,
        "How many attempts each run has; null: the type's.",
        validate=validate.Range(1, 1000, error="must be a whole number from 1 to 1000"),
    )
    ping_url: str | None = declared(
        partial(PingUrl, error_messages=TEXT),
        "A URL, such as a ping URL of Healthchecks.io, that is called when a run begins, succeeds, dies or is"
        " cancelled; null: none.",
    )

    @classmethod
    def of(cls, row: Row) -> Content:
        """Return the content of a row of job_definitions."""
        return cls(**{name: _value_of(sent, row[name]) for name, sent in SENT.items()})

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the schedule."""
        return zone_named(self.time_zone)

    def times(self) -> Times | None:
        """Return the nominal times, or None if there is no schedule."""
        return Times.of(self.schedule, self.time_zone) if self.schedule is not None else None

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first nominal time after this instant, or None."""
        times = self.times()
        return times.next_after(instant) if times else None

    def rule(self, name: str, paused: bool) -> Rule | None:
        """Return the rule that decides the nominal times, or None if there is no schedule."""
        times = self.times()
        if times is None:
            return None
        return Rule(times, self.catch_up, self.max_lateness, self.overlap, self.jitter, name, paused)

    def options(self, job_type: JobType) -> dict[str, Any]:
        """Return the columns that all runs of the definition share."""
        return {
            "job_type": job_type.name,
            "queue": self.queue or job_type.queue,
            "priority": self.priority,
            "max_attempts": self.max_attempts or job_type.max_attempts,
            "unique_mode": job_type.unique,
        }

    def prepared(self, job_type: JobType, nominal: datetime) -> Prepared:
        """Prepare the run of one nominal time for the queue.

        The natural key applies only if the payload depends on the nominal time.  Otherwise all payloads are equal, and
        the key would allow only the first occurrence.
        """
        # The same options as in a request, so that a request for the same run is a replay and not a conflict.
        options = {"run_at": None, "queue": self.queue, "priority": self.priority, "max_attempts": self.max_attempts}
        payload = rendered(self.payload, nominal, self.zone)
        return prepared(job_type, payload, options, natural=names_time(self.payload))


def _value_of(sent: fields.Field[Any], value: Any) -> Any:
    """Convert a column's value; the text of a choice becomes its enum member."""
    return sent.enum(value) if isinstance(sent, fields.Enum) else value


# The marshmallow fields by name, and the help texts of the options by name.
SENT: dict[str, fields.Field[Any]] = {spec.name: spec.metadata["sent"] for spec in dataclasses.fields(Content)}
OPTIONS: dict[str, str] = {
    spec.name: spec.metadata["option"] for spec in dataclasses.fields(Content) if spec.metadata.get("option")
}

# All columns of the content, for the SET clause of an UPDATE.
COLUMNS = ",\n    ".join(f"{name} = %({name})s" for name in SENT)
