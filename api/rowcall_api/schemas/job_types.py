"""Schemas for job types."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, validate

from rowcall.job_types import JobType
from rowcall.job_types.declaration import ENQUEUE_SCOPES
from rowcall.status import UNIQUE_MODES
from rowcall_api.payload_schemas import payload_schema
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import page_cursor

# How many delays are shown: enough to see how they grow.
DELAYS_MOST = 5


class JobTypesQuery(Schema):
    """The cursor of the page."""

    cursor = page_cursor()


class BackoffSchema(AnswerSchema):
    """How long a failed run waits for its next attempt."""

    delays = fields.List(
        fields.Float(),
        metadata={
            "description": "The delays, in seconds, before the second attempt and the next few.",
            "maxItems": DELAYS_MOST,
        },
    )
    cap = fields.Float(metadata={"description": "The longest delay, in seconds."})
    jitter = fields.Boolean(metadata={"description": "Each delay is random, between zero and the given delay."})


class HandoverSchema(AnswerSchema):
    """Where the runs of a job type are handed over."""

    task = fields.String(metadata={"description": "The Celery task that performs them."})
    queue = fields.String(metadata={"description": "The queue of its messages."})
    wait = fields.Float(metadata={"description": "Seconds after which a message that waits counts as lost."})


class JobTypeSchema(AnswerSchema):
    """A job type, as the code of this server declares it."""

    name = fields.String()
    description = fields.String(allow_none=True, metadata={"description": "The docstring of its payload's schema."})
    queue = fields.String(metadata={"description": "The queue of its runs, unless a request names another."})
    payload_schema = fields.Dict(
        keys=fields.String(),
        metadata={
            "description": "The payload as JSON Schema. A payload that fits may still be refused, by rules that JSON"
            " Schema cannot express."
        },
    )
    natural_key = fields.Boolean(metadata={"description": "Whether it derives a natural key from each payload."})
    unique = fields.String(
        validate=validate.OneOf(UNIQUE_MODES),
        metadata={"description": "How long a run with a natural key excludes others."},
    )
    scope = fields.String(
        validate=validate.OneOf(ENQUEUE_SCOPES),
        metadata={"description": "The scope that a key needs to enqueue its runs."},
    )
    max_attempts = fields.Integer()
    max_running = fields.Integer(
        allow_none=True, metadata={"description": "How many of its runs may run at a time; null for no limit."}
    )
    lease = fields.Float(allow_none=True, metadata={"description": "Seconds; null for the worker's setting."})
    time_limit = fields.Float(allow_none=True, metadata={"description": "Seconds; null for none."})
    isolated = fields.Boolean(metadata={"description": "Whether each run has a separate child process."})
    memory_cap = fields.Integer(allow_none=True, metadata={"description": "MiB; null for none."})
    backoff = fields.Nested(BackoffSchema)
    handover = fields.Nested(
        HandoverSchema, allow_none=True, metadata={"description": "Null if workers perform its runs."}
    )


class JobTypeListSchema(AnswerSchema):
    """A page of job types, by name."""

    items = fields.List(fields.Nested(JobTypeSchema))
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})


def described(job_type: JobType) -> dict[str, Any]:
    """Return a job type in the form of JobTypeSchema."""
    payload = payload_schema(job_type)
    backoff, tries = job_type.backoff, range(1, min(job_type.max_attempts, DELAYS_MOST + 1))
    delays = [backoff.delay(attempt, chance=lambda: 1.0) for attempt in tries]
    return {
        **{name: value for name, value in vars(job_type).items() if name in JobTypeSchema().fields},
        "description": payload.get("description"),
        "payload_schema": payload,
        "natural_key": job_type.key is not None,
        "backoff": {"delays": delays, "cap": backoff.cap, "jitter": backoff.jitter},
    }
