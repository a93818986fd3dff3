"""Schemas for workers and what they do."""

from __future__ import annotations

from marshmallow import fields

from rowcall.queue.views.workers import RUNS_MOST
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import FilteredPageQuery


class ProgressSchema(AnswerSchema):
    """What a handler has reported of its progress."""

    share = fields.Float(metadata={"description": "From 0 to 1."})
    note = fields.String()


class WorkersRunSchema(AnswerSchema):
    """A run that a worker has claimed and not finished."""

    run_id = fields.Integer()
    job_type = fields.String()
    queue = fields.String()
    attempt = fields.Integer()
    started_at = fields.AwareDateTime()
    progress = fields.Nested(ProgressSchema, allow_none=True)


class WorkerSchema(AnswerSchema):
    """A worker process."""

    id = fields.String(metadata={"description": "Its host, its process id and a random part; `locked_by` of its runs."})
    hostname = fields.String()
    pid = fields.Integer()
    version = fields.String(metadata={"description": "Its version of Rowcall."})
    queues = fields.List(
        fields.String(), allow_none=True, metadata={"description": "The queues that it serves; null for all."}
    )
    job_types = fields.List(fields.String(), metadata={"description": "The job types that it serves."})
    concurrency = fields.Integer(metadata={"description": "How many runs it performs at a time."})
    started_at = fields.AwareDateTime()
    heartbeat_at = fields.AwareDateTime()
    heartbeat_age_seconds = fields.Float()
    stopped_at = fields.AwareDateTime(allow_none=True)
    alive = fields.Boolean(
        metadata={
            "description": "Whether it has neither stopped nor missed two heartbeats. A worker that has not stopped"
            " is listed until its last heartbeat is 150 seconds old (three times ROWCALL_HEARTBEAT, if that is"
            " longer)."
        }
    )
    sleeping = fields.Boolean(
        metadata={"description": "Whether it waits for a notification because nothing is due for it."}
    )
    running = fields.Integer(
        metadata={
            "description": "How many runs it has claimed and not finished. Only the 2000 runs of each queue and"
            " priority that have been due longest are counted."
        }
    )
    runs = fields.List(
        fields.Nested(WorkersRunSchema),
        metadata={
            "description": f"At most {RUNS_MOST} of these runs, the longest running first.",
            "maxItems": RUNS_MOST,
        },
    )


class WorkersQuery(FilteredPageQuery):
    """Which workers, the page size and the cursor."""

    stopped = fields.Boolean(
        load_default=False,
        truthy={"true"},
        falsy={"false"},
        metadata={"description": "Also list workers that stopped or went silent in the last day."},
    )
    chosen_fields = chosen_fields(WorkerSchema)


class WorkerListSchema(AnswerSchema):
    """A page of workers, the newest first."""

    items = page_items(WorkerSchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})
