"""Parses, checks and formats the content of a definition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import marshmallow

from rowcall.base.errors import DeclarationError, DefinitionInvalid, JobTypeUnknown, RunInvalid, ScheduleInvalid
from rowcall.base.errors.sentences import Fault
from rowcall.definitions.content import SENT, Content
from rowcall.definitions.fields import Duration, refused_value
from rowcall.job_types import Catalogue, JobType
from rowcall.queue.enqueue import check_options, stored_text
from rowcall.schedule import CatchUp, Overlap, duration_words, parse, zone_named

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")

# An arbitrary nominal time, to check payloads that depend on it.
SAMPLE = datetime(2026, 1, 5, 9, tzinfo=UTC)


class ContentSchema(marshmallow.Schema):
    """The content of a definition."""

    class Meta:
        """marshmallow's options: use the fields that Content declares."""

        include = SENT


def as_sent(content: Content) -> dict[str, Any]:
    """Return the content as JSON-compatible data."""
    sent: dict[str, Any] = ContentSchema().dump(content)
    return sent


def in_words(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same fields with durations as text, for people."""
    return {
        name: value if value is None or not isinstance(SENT.get(name), Duration) else _words(value)
        for name, value in sent.items()
    }


def _words(seconds: float) -> str:
    return duration_words(timedelta(seconds=seconds))


def checked(name: str, raw: Mapping[str, Any], catalogue: Catalogue) -> Content:
    """Return the checked content, or raise DefinitionInvalid with all problems, field by field.

    Files, requests and code all pass this check; content that passes can be enqueued when its time comes.
    """
    usable, wrong = _loaded(raw)
    if not NAME.fullmatch(name):
        wrong["name"] = "must begin with a lower-case letter or digit and contain only those and _ . -, such as nightly"
    if usable.get("overlap") is None:
        # With catch_up=all, each missed time is enqueued while the run before it is still waiting.
        usable["overlap"] = Overlap.ALLOW if usable.get("catch_up") is CatchUp.ALL else Overlap.SKIP
    content = Content(**{"job_type": "", **usable})
    # A field that could not be parsed has its default here; the parser's error replaces any error about that default.
    wrong = {**_wrong(content, catalogue), **wrong}
    if wrong:
        raise DefinitionInvalid(name, wrong)
    return content


def _loaded(raw: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, object]]:
    """Parse the fields; return the valid ones, and an error for each of the others."""
    try:
        usable: dict[str, Any] = ContentSchema().load(raw)
    except marshmallow.ValidationError as error:
        usable = cast(dict[str, Any], error.valid_data)
        return usable, {str(name): _fault(name, said[0], raw) for name, said in error.messages_dict.items()}
    return usable, {}


def _fault(name: str, message: str, raw: Mapping[str, Any]) -> Fault:
    if name not in SENT:
        return Fault(f"is not a field of a definition; the fields are {', '.join(SENT)}", "unknown")
    if name not in raw:
        return Fault(message, "missing")
    said = f"is {refused_value(raw[name])} and {message}" if message.startswith("must ") else message
    return Fault(said, "null" if raw[name] is None else "invalid")


def _wrong(content: Content, catalogue: Catalogue) -> dict[str, object]:
    """Check fields that could be parsed; return an error for each invalid one."""
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
        job_type = catalogue[content.job_type]
    except JobTypeUnknown as error:
        return {**wrong, "job_type": error.fault}
    return {**wrong, **_refused_run(replace(content, time_zone=zone), job_type)}


def _refused_run(content: Content, job_type: JobType) -> dict[str, object]:
    """Return the errors that the queue would raise for the definition's runs."""
    wrong: dict[str, object] = {}
    try:
        check_options(job_type, vars(content))
    except RunInvalid as error:
        wrong.update(error.fields)
    try:
        stored_text(content.payload)
        # check_options has already checked the options.
        replace(content, queue=None, priority=0, max_attempts=None).prepared(job_type, SAMPLE)
    except RunInvalid as error:
        wrong.update(error.fields)
    except ScheduleInvalid as error:
        wrong["payload"] = str(error)
    except DeclarationError as error:
        wrong["job_type"] = str(error)
    return wrong
