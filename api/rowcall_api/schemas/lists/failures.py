"""Schemas for failed attempts, counted by job type and error."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.queue.failures.list import ADDED_MOST
from rowcall.queue.queues import COUNTED_MOST
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import PAGE_MOST, name


class FailuresQuery(Schema):
    """Whose failures, and how many errors."""

    job_type = name(load_default=None, metadata={"description": "Only failures of this job type."})
    queue = name(load_default=None, metadata={"description": "Only failures in this queue."})
    limit = fields.Integer(
        load_default=50, validate=validate.Range(1, PAGE_MOST), metadata={"description": "At most this many errors."}
    )


class FailureSchema(AnswerSchema):
    """An error that made attempts of a job type fail in the last week."""

    job_type = fields.String()
    error_type = fields.String(
        allow_none=True,
        metadata={
            "description": "The class of the error; null for rare errors that are counted together, because too many"
            " different ones occurred in a minute."
        },
    )
    error = fields.String(
        allow_none=True,
        metadata={
            "description": "The first line of the newest example, with * for quoted text and for words that contain a"
            " digit or an @, unless only * would remain; null if the example was pruned or erased."
        },
    )
    last_hour = fields.Integer(metadata={"description": "Attempts that failed with it in the last hour."})
    last_day = fields.Integer(metadata={"description": "In the last 24 hours."})
    last_week = fields.Integer(metadata={"description": "In the last 7 days."})
    retrying = fields.Integer(
        metadata={
            "description": "Runs whose last attempt failed with it and that wait for another. In each queue and"
            f" priority, only the {COUNTED_MOST} runs that have been due longest and the {COUNTED_MOST} that are due"
            " next are counted."
        }
    )
    first_at = fields.AwareDateTime(metadata={"description": "The minute of the first one within the week."})
    last_at = fields.AwareDateTime(metadata={"description": "When the newest one ended."})
    run_id = fields.Integer(
        allow_none=True, metadata={"description": "The run that failed most recently; null if it was pruned or erased."}
    )


class FailureListSchema(AnswerSchema):
    """The errors, the most frequent in the last hour first."""

    items = page_items(FailureSchema)
    complete = fields.Boolean(
        metadata={
            "description": f"False while {ADDED_MOST} or more failures have not been counted yet, such as after a"
            f" migration or during a burst of failures: only the newest {ADDED_MOST} of these are then included."
        }
    )
