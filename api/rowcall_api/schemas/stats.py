"""What is told of the whole."""

from __future__ import annotations

from marshmallow import Schema, fields

from rowcall.queue.queues import COUNTED_MOST


def _count(told: str) -> fields.Integer:
    return fields.Integer(metadata={"description": told, "minimum": 0, "maximum": COUNTED_MOST})


class QueueStatsSchema(Schema):
    """A queue in which something is live, or that has a rule or a job type."""

    name = fields.String()
    paused_at = fields.AwareDateTime(allow_none=True)
    max_running = fields.Integer(allow_none=True, metadata={"description": "How many may run at a time."})
    due = _count("Could be claimed now.")
    oldest_due_age_seconds = fields.Float(
        metadata={"description": "For how long the longest due of them is; 0 where nothing is."}
    )
    queued = _count("Status queued: due, or for later.")
    running = _count("Status running; looked for among the 2000 of each priority that are due the longest.")
    failed = _count("Status failed: another attempt will be made.")


class DefinitionStatsSchema(Schema):
    """Of all definitions."""

    paused = _count("Nothing is enqueued for them.")
    overdue = _count("Their time has come, and no tick decides them: no worker knows the type, or they are broken.")


class TickSchema(Schema):
    """The last tick of the schedules that went well."""

    ticked_at = fields.AwareDateTime()
    worker = fields.String(allow_none=True)
    age_seconds = fields.Float()
    silent = fields.Boolean(metadata={"description": "Too long ago for what is scheduled."})


class StatsSchema(Schema):
    """What waits, runs and fails.  Counting stops at 1000: there it means so many or more."""

    at = fields.AwareDateTime(metadata={"description": "The database's time."})
    queues = fields.List(fields.Nested(QueueStatsSchema))
    attempts_failed_last_hour = _count("Attempts that failed, whether another was made or not.")
    workers_alive = fields.Integer(metadata={"description": "Heard of lately, and not stopped."})
    effects_unknown = fields.Dict(
        keys=fields.String(),
        values=_count("Of this kind; `GET /v1/effects?state=unknown` lists them."),
        metadata={"description": "Kind -> how many wait for an operator's word."},
    )
    definitions = fields.Nested(DefinitionStatsSchema)
    tick = fields.Nested(TickSchema)
