"""Schemas for the state of the whole system."""

from __future__ import annotations

from marshmallow import Schema, fields

from rowcall.queue.queues import COUNTED_MOST
from rowcall.queue.views.stats import EXAMINED_MOST


def _count(description: str) -> fields.Integer:
    return fields.Integer(metadata={"description": description, "minimum": 0, "maximum": COUNTED_MOST})


class QueueStatsSchema(Schema):
    """A queue with live runs, settings or a job type."""

    name = fields.String()
    paused_at = fields.AwareDateTime(allow_none=True)
    max_running = fields.Integer(allow_none=True, metadata={"description": "How many of its runs may run at a time."})
    due = _count("Runs that are due and not running.")
    oldest_due_age_seconds = fields.Float(
        metadata={
            "description": "How long the oldest run that is due and that nobody performs has been due, whether it waits"
            " for a worker or was handed over and waits for a consumer; 0 if there is none."
        }
    )
    queued = _count("Runs with the status queued, due now or later.")
    running = _count(
        "Runs with the status running. Only the 2000 runs of each priority that have been due longest are counted."
    )
    handed_over = _count("Of the running runs, those that were handed over and that no consumer has begun.")
    failed = _count("Runs with the status failed, which get another attempt.")


class DefinitionStatsSchema(Schema):
    """Counts of definitions."""

    paused = _count("Paused definitions, which enqueue nothing.")
    overdue = _count(
        "Definitions with a nominal time that became due more than 150 seconds ago and is not processed yet: no worker"
        " ticks, none knows the job type, or the schedule is broken."
    )


class TickSchema(Schema):
    """The last successful tick."""

    ticked_at = fields.AwareDateTime()
    worker = fields.String(allow_none=True)
    age_seconds = fields.Float()
    silent = fields.Boolean(
        metadata={"description": "True if schedules exist and this tick is too old: no worker ticks."}
    )


class StatsSchema(Schema):
    """Counts of waiting, running and failed runs.  A count of 1000 means 1000 or more."""

    at = fields.AwareDateTime(metadata={"description": "The database's time."})
    queues = fields.List(fields.Nested(QueueStatsSchema))
    attempts_failed_last_hour = _count("Attempts that failed, whether another was made or not.")
    runs_dead_last_day = _count(
        "Runs that became dead within the last day and still are;"
        f" only the day's latest {EXAMINED_MOST:,} failed attempts are examined."
    )
    workers_alive = fields.Integer(
        metadata={"description": "Workers that have not stopped, and have not missed two heartbeats."}
    )
    effects_unknown = fields.Dict(
        keys=fields.String(),
        values=_count("Unknown effects of this kind; `GET /v1/effects?state=unknown` lists them."),
        metadata={"description": "Kind -> number of effects that an operator must resolve."},
    )
    definitions = fields.Nested(DefinitionStatsSchema)
    tick = fields.Nested(TickSchema)
