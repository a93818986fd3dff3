"""Changes to many runs, and their result."""

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
        metadata={"description": "As in the list. By default, all statuses that this can change."},
    )
    all = YesOrNo(
        load_default=False, metadata={"description": "Required to change every run, if the filter matches all."}
    )
    dry_run = YesOrNo(load_default=False, metadata={"description": "Change nothing, and report what would be changed."})
    limit = fields.Integer(
        strict=True,
        load_default=CHANGED_MOST,
        validate=validate.Range(1, CHANGED_MOST),
        metadata={"description": "The most runs to change, the newest first."},
    )
    cursor = fields.String(
        load_default=None,
        allow_none=True,
        metadata={"description": "The `next` of the previous call, with the same filter."},
    )


class BulkDoneSchema(AnswerSchema):
    """What was changed, or would be in a dry run."""

    matched = fields.Integer(metadata={"description": "Runs that the filter matches and whose status allows it."})
    changed = fields.Integer()
    refused = fields.Integer(
        metadata={
            "description": "Skipped: locked or changed by another transaction, or another run holds their natural key."
        }
    )
    ids = fields.List(
        fields.Integer(), metadata={"description": "The runs that were changed; in a dry run, those that match."}
    )
    more = fields.Boolean(metadata={"description": "More runs may match: continue with `next`."})
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next call."})
    dry_run = fields.Boolean()
