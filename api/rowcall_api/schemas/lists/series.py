"""Schemas for the series."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.queue.series.histogram import BOUNDS
from rowcall.queue.series.read import POINTS_MOST, STEPS
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import NAME_CHARACTERS, Moment


class SeriesQuery(Schema):
    """The range, the length of its steps, and the job type."""

    since = Moment(
        data_key="from",
        load_default=None,
        metadata={"description": "The beginning of the range; the default is an hour before its end."},
    )
    until = Moment(
        data_key="to", load_default=None, metadata={"description": "The end of the range; the default is now."}
    )
    step = fields.String(
        load_default="1m",
        validate=validate.OneOf(STEPS),
        metadata={
            "description": "The length of a step. Steps are aligned to multiples of their length in UTC, and the range"
            f" is widened to whole steps. A range has at most {POINTS_MOST} of them."
        },
    )
    job_type = fields.String(
        load_default=None,
        validate=validate.Length(1, NAME_CHARACTERS),
        metadata={"description": "Only attempts of this job type."},
    )


def _count(description: str) -> fields.Integer:
    return fields.Integer(metadata={"description": description, "minimum": 0})


def _quantile(share: str) -> fields.Float:
    return fields.Float(
        allow_none=True,
        metadata={"description": f"{share} of the times are at most this long; null if there are none."},
    )


class TimesSchema(AnswerSchema):
    """Percentiles of times in seconds."""

    p50 = _quantile("Half")
    p95 = _quantile("95%")
    p99 = _quantile("99%")


class PointSchema(AnswerSchema):
    """One step: how many attempts ended in it, and percentiles; where nothing happened, counts are 0."""

    at = fields.AwareDateTime(metadata={"description": "When the step begins."})
    succeeded = _count("Attempts that succeeded.")
    failed = _count("Attempts that failed and are followed by another one.")
    dead = _count("Attempts that failed for good.")
    cancelled = _count("Attempts that ended because of a cancel request.")
    snoozed = _count("Attempts whose handler asked to wait.")
    released = _count("Attempts that a stopping worker gave back.")
    waiting = fields.Nested(
        TimesSchema,
        metadata={
            "description": "How many seconds runs had been due when they were claimed, for attempts that began in"
            f" this step. Interpolated within one of {len(BOUNDS)} ranges of times; at most {BOUNDS[-1]:g}."
        },
    )
    running = fields.Nested(
        TimesSchema,
        metadata={
            "description": "How many seconds handlers ran, for attempts that ended in this step; interpolated in the"
            " same way."
        },
    )


class DeploySchema(AnswerSchema):
    """The first start of a worker of a version."""

    version = fields.String(metadata={"description": "The version of Rowcall."})
    at = fields.AwareDateTime()


class SeriesSchema(AnswerSchema):
    """The points of a range, one for each step, and the deploys within it."""

    since = fields.AwareDateTime(data_key="from", metadata={"description": "The beginning of the first step."})
    until = fields.AwareDateTime(data_key="to", metadata={"description": "The end of the last step."})
    points = fields.List(fields.Nested(PointSchema))
    deploys = fields.List(fields.Nested(DeploySchema))
