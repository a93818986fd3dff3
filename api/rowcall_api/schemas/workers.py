"""Schemas for workers and what they do."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from rowcall.queue.views.handed_over import HOLDERS_MOST
from rowcall.queue.views.stats import SCANNED_MOST
from rowcall.queue.views.workers import RUNS_MOST
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import FilteredPageQuery


class ProgressSchema(AnswerSchema):
    """What a handler has reported of its progress."""

    share = fields.Float(metadata={"description": "From 0 to 1."})
    note = fields.String()


class WorkersRunSchema(AnswerSchema):
    """A run that a worker has claimed, or a consumer has begun, and not finished."""

    run_id = fields.Integer()
    job_type = fields.String()
    queue = fields.String()
    attempt = fields.Integer()
    started_at = fields.AwareDateTime()
    progress = fields.Nested(ProgressSchema, allow_none=True)


COUNTED = f"Only the {SCANNED_MOST} runs of each queue and priority that have been due longest are counted."


def _first_runs() -> fields.List[Any]:
    described = f"At most {RUNS_MOST} of these runs, the longest running first."
    return fields.List(fields.Nested(WorkersRunSchema), metadata={"description": described, "maxItems": RUNS_MOST})


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
    running = fields.Integer(metadata={"description": f"How many runs it has claimed and not finished. {COUNTED}"})
    runs = _first_runs()


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


class WaitingMessagesSchema(AnswerSchema):
    """Runs whose messages wait in a queue of the broker."""

    queue = fields.String(metadata={"description": "The broker's queue."})
    task = fields.String(metadata={"description": "The Celery task that the messages are for."})
    waiting = fields.Integer(metadata={"description": f"How many runs wait for a consumer. {COUNTED}"})
    waiting_since = fields.AwareDateTime(metadata={"description": "When the longest waiting run was handed over."})
    run_id = fields.Integer(metadata={"description": "The longest waiting run."})


class ConsumerSchema(AnswerSchema):
    """A process of another queue's worker, such as Celery's, that performs runs."""

    id = fields.String(metadata={"description": "`locked_by` of its runs."})
    hostname = fields.String()
    pid = fields.Integer()
    heartbeat_at = fields.AwareDateTime(metadata={"description": "When it last renewed the leases of its runs."})
    heartbeat_age_seconds = fields.Float()
    locked_until = fields.AwareDateTime(
        metadata={"description": "When all of these leases have expired, unless it renews them."}
    )
    alive = fields.Boolean(
        metadata={"description": "Whether it has not missed two heartbeats. If it is dead, its leases expire soon."}
    )
    running = fields.Integer(metadata={"description": f"How many runs it has begun and not finished. {COUNTED}"})
    runs = _first_runs()


class HandedOverSchema(AnswerSchema):
    """Where runs were handed over."""

    waiting = fields.List(
        fields.Nested(WaitingMessagesSchema),
        metadata={
            "description": "One entry for each queue and task of the broker, the longest waiting first.",
            "maxItems": HOLDERS_MOST,
        },
    )
    consumers = fields.List(
        fields.Nested(ConsumerSchema),
        metadata={
            "description": "The consumers that perform runs, the silent ones first. An idle consumer is not known.",
            "maxItems": HOLDERS_MOST,
        },
    )
    more = fields.Boolean(metadata={"description": "Whether there may be more than is listed."})
