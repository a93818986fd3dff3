"""Schemas for changing many runs at once."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.queue.bulk import CHANGED_MOST
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import YesOrNo
from rowcall_api.schemas.filters import FilterSchema


class BulkSchema(Schema):
    """Which runs to change, and how many at most."""

    filter = fields.Nested(
        FilterSchema,
        load_default=dict,
        metadata={
            "description": "The same filters as in the list of runs. Default: all statuses that this can change."
        },
    )
    all = YesOrNo(
        load_default=False,
        metadata={"description": "Must be true if the filter is empty, to confirm that all runs are meant."},
    )
    dry_run = YesOrNo(load_default=False, metadata={"description": "Only report what would change."})
    limit = fields.Integer(
        strict=True,
        load_default=CHANGED_MOST,
        validate=validate.Range(1, CHANGED_MOST),
        metadata={"description": "Change at most this many runs, the newest first."},
    )
    cursor = fields.String(
        load_default=None,
        allow_none=True,
        metadata={"description": "The `next` of the previous call, with the same filter."},
    )


class BulkDoneSchema(AnswerSchema):
    """What was changed, or what a dry run would change."""

    matched = fields.Integer(
        metadata={"description": "Runs that match the filter and have a status that can be changed."}
    )
    changed = fields.Integer()
    refused = fields.Integer(
        metadata={
            "description": "Skipped: locked or changed by another transaction, or another run holds their natural key."
        }
    )
    ids = fields.List(
        fields.Integer(),
        metadata={"description": "The changed runs; in a dry run, the matching ones.", "maxItems": CHANGED_MOST},
    )
    more = fields.Boolean(metadata={"description": "More runs may match: continue with `next`."})
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next call."})
    dry_run = fields.Boolean()
