"""The content of a definition: its fields as they are sent, and what they must be to be kept.

Files, requests and code all come through `checked`; what it lets through can be enqueued when its time comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rowcall.base.database import Row
from rowcall.base.errors import DefinitionInvalid, JobTypeUnknown, RunInvalid, ScheduleInvalid
from rowcall.base.jsonb import stored
from rowcall.definitions.content_schema import DURATIONS, ContentSchema, loaded
from rowcall.job_types import Catalogue, JobType
from rowcall.queue.enqueue import Prepared, check_options, prepared
from rowcall.schedule import (
    CatchUp,
    MissingTime,
    Overlap,
    RepeatedTime,
    Rule,
    Times,
    duration_words,
    names_time,
    parse,
    rendered,
    zone_named,
)

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")

# Any moment serves to try a payload that names its nominal time.
SAMPLE = datetime(2026, 1, 5, 9, tzinfo=UTC)


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
        return zone_named(self.time_zone)

    def times(self) -> Times | None:
        """Its nominal times; None where only people run it."""
        if self.schedule is None:
            return None
        return Times.of(self.schedule, self.time_zone, self.missing_time, self.repeated_time)

    def next_after(self, instant: datetime) -> datetime | None:
        """Its first nominal time later than this instant, if there is one."""
        times = self.times()
        return times.next_after(instant) if times else None

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
        # What a request for the same run would have chosen: it finds this one, and is no conflict.
        options = {"run_at": None, "queue": self.queue, "priority": self.priority, "max_attempts": self.max_attempts}
        payload = rendered(self.payload, nominal, self.zone)
        return prepared(kind, payload, options, natural=names_time(self.payload))


def told(content: Content) -> dict[str, Any]:
    """The content as it is sent, for programs."""
    sent: dict[str, Any] = ContentSchema().dump(content)
    return sent


def in_words(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields for people: durations with their units."""
    return {
        name: duration_words(timedelta(seconds=value)) if name in DURATIONS and value is not None else value
        for name, value in sent.items()
    }


def checked(name: str, raw: Mapping[str, Any], catalogue: Catalogue) -> Content:
    """The content as it may be kept, or DefinitionInvalid with all that is wrong, field by field."""
    usable, wrong = loaded(raw)
    if not NAME.fullmatch(name):
        wrong["name"] = "must begin with a lower-case letter or digit, and go on with those or _ . -, such as nightly"
    if usable.get("overlap") is None:
        # To catch all up one after another, each must be let in while the one before it still waits.
        usable["overlap"] = Overlap.ALLOW if usable.get("catch_up") is CatchUp.ALL else Overlap.SKIP
    content = Content(**{"job_type": "", **usable})
    # A field that cannot be read has its default here, and what is said of that must not hide why.
    wrong = {**_wrong(content, catalogue), **wrong}
    if wrong:
        raise DefinitionInvalid(name, wrong)
    return content


def _wrong(content: Content, catalogue: Catalogue) -> dict[str, object]:
    """Field -> what is wrong with it, beyond whether it can be read."""
    wrong: dict[str, object] = {}
    zone = "UTC"
    try:
        zone = zone_named(content.time_zone).key
    except ScheduleInvalid as error:
        wrong["time_zone"] = str(error)
    try:
        parse("@daily" if content.schedule is None else content.schedule)
    except ScheduleInvalid as error:
        wrong["schedule"] = str(error)
    try:
        kind = catalogue[content.job_type]
    except JobTypeUnknown as error:
        return {**wrong, "job_type": str(error)}
    return {**wrong, **_refused_run(replace(content, time_zone=zone), kind)}


def _refused_run(content: Content, kind: JobType) -> dict[str, object]:
    """What the queue would refuse of its runs."""
    wrong: dict[str, object] = {}
    try:
        check_options(kind, vars(content))
    except RunInvalid as error:
        wrong.update(error.fields)
    try:
        stored(content.payload)
        # The options are told of already.
        replace(content, queue=None, priority=0, max_attempts=None).prepared(kind, SAMPLE)
    except RunInvalid as error:
        wrong.update(error.fields)
    except (ScheduleInvalid, ValueError) as error:
        wrong["payload"] = str(error)
    return wrong
