"""Schemas for queues and their settings."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import page_cursor
from rowcall_api.schemas.stats import QueueStatsSchema

# The largest integer that its column can hold.
LIMIT_MOST = 2**31 - 1


class QueueSchema(QueueStatsSchema, AnswerSchema):
    """A queue: its settings, and counts of its runs.  A count of 1000 means 1000 or more."""

    max_running = fields.Integer(
        allow_none=True,
        metadata={
            "description": "How many of its runs may run at a time: the lower of the two limits; null for no limit."
        },
    )
    operator_limit = fields.Integer(allow_none=True, metadata={"description": "The limit that an operator has set."})
    declared_limit = fields.Integer(
        allow_none=True, metadata={"description": "The `max_running` that the queue's job type declares."}
    )


class PartialQueueSchema(QueueSchema):
    """A queue; without the scope `read`, only its settings."""

    least = ("name", "paused_at", "max_running")


class QueueListSchema(AnswerSchema):
    """A page of queues, by name."""

    items = fields.List(fields.Nested(QueueSchema))
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})


class QueuesQuery(Schema):
    """The cursor of the page."""

    cursor = page_cursor()


class QueueLimitSchema(Schema):
    """An operator's limit on a queue."""

    max_running = fields.Integer(
        strict=True,
        required=True,
        allow_none=True,
        validate=validate.Range(0, LIMIT_MOST),
        metadata={"description": "How many of its runs may run at a time; null removes the limit."},
    )
