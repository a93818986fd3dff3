"""What is to be done to many runs, and what was."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.queue.bulk import CHANGED_MOST
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import YesOrNo
from rowcall_api.schemas.filters import FilterSchema


class BulkSchema(Schema):
    """Which runs, and how many of them."""

    filter = fields.Nested(
        FilterSchema,
        load_default=dict,
        metadata={"description": "As the list has it; of the statuses, those that this can be done to."},
    )
    all = YesOrNo(
        load_default=False, metadata={"description": "Needed where the filter leaves everything open: all are meant."}
    )
    dry_run = YesOrNo(load_default=False, metadata={"description": "Change nothing, and tell what would be changed."})
    limit = fields.Integer(
        strict=True,
        load_default=CHANGED_MOST,
        validate=validate.Range(1, CHANGED_MOST),
        metadata={"description": "The newest so many at the most."},
    )
    cursor = fields.String(
        load_default=None,
        allow_none=True,
        metadata={"description": "The `next` of the call before, with the same filter."},
    )


class BulkDoneSchema(AnswerSchema):
    """What was done, or in a dry run would be."""

    matched = fields.Integer(metadata={"description": "Runs that the filter matches and whose status allows it."})
    changed = fields.Integer()
    refused = fields.Integer(metadata={"description": "Passed over, because others held them or were faster."})
    ids = fields.List(fields.Integer(), metadata={"description": "Of those that were changed; in a dry run, matched."})
    more = fields.Boolean(metadata={"description": "There may be others that match: go on with `next`."})
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next call."})
    dry_run = fields.Boolean()
