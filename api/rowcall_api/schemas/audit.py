"""Schemas for the audit log."""

from __future__ import annotations

from marshmallow import fields, validate

from rowcall.access.audit import SUBJECTS
from rowcall.base.database import LARGEST_ID
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import Moment
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import FilteredPageQuery


def _text(description: str) -> fields.String:
    return fields.String(load_default=None, validate=validate.Length(1), metadata={"description": description})


class AuditSchema(AnswerSchema):
    """A change by an operator."""

    id = fields.Integer()
    at = fields.AwareDateTime()
    who = fields.String(
        metadata={"description": "api:NAME (PREFIX) for an API key, cli:USER, rowcall up or rowcall migrate."}
    )
    action = fields.String()
    subject = fields.String()
    subject_id = fields.Integer(
        allow_none=True,
        metadata={"description": "Null for queues and views, which have only a name, and for the database."},
    )
    subject_name = fields.String(
        allow_none=True, metadata={"description": "The name of the definition, queue or view; null for other subjects."}
    )
    before = fields.Raw(allow_none=True, metadata={"description": "The affected fields, before the change."})
    after = fields.Raw(allow_none=True, metadata={"description": "The same fields, after the change."})
    request_id = fields.String(
        allow_none=True,
        metadata={"description": "The `X-Request-Id` of the request; for the runs of an operation, `operation-ID`."},
    )


class AuditQuery(FilteredPageQuery):
    """The filters, the page size and the cursor."""

    who = _text("Only changes by this caller: api:NAME (all API keys of this name), or cli:USER.")
    action = _text("Only this action, such as retry or pause.")
    subject = _text(f"Only changes to subjects of this type: {', '.join(SUBJECTS[:-1])} or {SUBJECTS[-1]}.")
    subject_id = fields.Integer(
        load_default=None,
        validate=validate.Range(1, LARGEST_ID),
        metadata={"description": "Only changes to the subject with this id; send `subject` too."},
    )
    after = Moment(load_default=None, metadata={"description": "Only changes at this time or later."})
    before = Moment(load_default=None, metadata={"description": "Only changes before this time."})
    chosen_fields = chosen_fields(AuditSchema)


class AuditListSchema(AnswerSchema):
    """A page of changes, the newest first."""

    items = page_items(AuditSchema)
    next = fields.String(
        allow_none=True,
        metadata={
            "description": "The cursor of the next page; null on the last page.  A page ends after 20,000 scanned rows"
            " or about 1 MiB of JSON, so a short or empty page may have a next one."
        },
    )
