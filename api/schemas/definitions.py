"""What a definition looks like on its way out, and what may be asked of its schedule."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from shared.definitions import ContentSchema
from shared.schedule import Outcome


class DefinitionSchema(ContentSchema):
    """A definition, as it is now."""

    name = fields.String()
    revision = fields.Integer(metadata={"description": "Grows with every change of the content."})
    managed_by = fields.String(validate=validate.OneOf(("api", "code", "file")))
    next_run_at = fields.AwareDateTime(allow_none=True, metadata={"description": "The next nominal time to decide."})
    paused_at = fields.AwareDateTime(allow_none=True)
    created_at = fields.AwareDateTime()
    updated_at = fields.AwareDateTime()


class OccurrenceSchema(Schema):
    """One nominal time, and what became of it."""

    nominal_at = fields.AwareDateTime()
    outcome = fields.Enum(Outcome, by_value=True)
    reason = fields.String(allow_none=True)
    run_id = fields.Integer(allow_none=True)
    revision = fields.Integer()
    created_at = fields.AwareDateTime()


class PreviewQuery(Schema):
    """From when, and how far."""

    start = fields.String(
        data_key="from", load_default="now", metadata={"description": "ISO 8601, or words such as tomorrow 09:00."}
    )
    until = fields.String(load_default=None, metadata={"description": "What would run up to then."})
    asleep = fields.String(
        load_default=None, metadata={"description": "As if nothing was awake between `from` and then."}
    )
    count = fields.Integer(load_default=10, validate=validate.Range(1, 1000))


class ShownSchema(Schema):
    """One nominal time to come, and what would become of it."""

    name = fields.String()
    nominal_at = fields.AwareDateTime()
    wall = fields.String(metadata={"description": "By the clock on the wall, in the definition's zone."})
    outcome = fields.Enum(Outcome, by_value=True)
    run_at = fields.AwareDateTime(allow_none=True)
    note = fields.String(allow_none=True)


class EnqueuedSchema(Schema):
    """The run there is now."""

    run_id = fields.Integer()
    replayed = fields.Boolean(metadata={"description": "Its key had a run already: nothing was added."})


class LimitQuery(Schema):
    """How many."""

    limit = fields.Integer(load_default=50, validate=validate.Range(1, 200))
