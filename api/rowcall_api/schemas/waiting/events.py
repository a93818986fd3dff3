"""Schemas for the feed of events."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall_api.schemas.fields import name

# After this time, a client reconnects with its last id, and misses nothing.
LONGEST_FEED_SECONDS = 300


class EventsQuery(Schema):
    """Which events, and for how long."""

    job_type = name(load_default=None, metadata={"description": "Only runs of this job type."})
    queue = name(load_default=None, metadata={"description": "Only runs in this queue."})
    wait = fields.Integer(
        load_default=60,
        validate=validate.Range(0, LONGEST_FEED_SECONDS),
        metadata={
            "description": "End the response after this many seconds; 0 returns what has happened so far, and ends."
        },
    )


class EventsHeaders(Schema):
    """Where to continue."""

    last_event_id = fields.String(
        data_key="Last-Event-ID",
        load_default=None,
        metadata={"description": "The last `id` that the client has received."},
    )


class EventSchema(Schema):
    """One event of the feed."""

    event = fields.String(required=True, validate=validate.OneOf(["run", "worker", "operation", "reset", "partial"]))
    data = fields.String(required=True, metadata={"description": "A JSON object, empty for `reset` and `partial`."})
