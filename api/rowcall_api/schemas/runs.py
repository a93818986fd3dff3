"""Runs in requests and answers."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, pre_dump, validate

from rowcall.base.database import Row
from rowcall.queue import allowed_events, version_of
from rowcall.queue.views.lists import LARGE
from rowcall.status import Event, Status
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.effects import EffectSchema
from rowcall_api.schemas.fields import ENTITY_TAGS, Moment, YesOrNo, key_header, name


def tagged(run: Row) -> dict[str, str]:
    """The ETag header of this run."""
    return {"ETag": f'"{version_of(run)}"'}


class EnqueueSchema(Schema):
    """A request for a run."""

    job_type = name(required=True, metadata={"example": "noop"})
    payload = fields.Dict(keys=fields.String(), load_default=dict, metadata={"example": {"hello": "world"}})
    run_at = Moment(load_default=None, allow_none=True, metadata={"description": "Not before this time; default: now."})
    queue = name(load_default=None, allow_none=True)
    priority = fields.Integer(
        strict=True, load_default=0, metadata={"description": "A lower number is more urgent; default 0."}
    )
    max_attempts = fields.Integer(strict=True, load_default=None, allow_none=True)


class CloneSchema(Schema):
    """The changes to the original; the rest stays."""

    payload = fields.Dict(keys=fields.String(), allow_none=True, metadata={"example": {"hello": "again"}})
    run_at = Moment(allow_none=True, metadata={"description": "Not before this time; default: now."})
    queue = name(allow_none=True)
    priority = fields.Integer(strict=True, allow_none=True)
    max_attempts = fields.Integer(strict=True, allow_none=True)


class CancelSchema(Schema):
    """The options of a cancellation."""

    force = YesOrNo(
        load_default=False,
        metadata={"description": "Do not wait for its worker; refuse its later writes."},
    )


class EnqueueHeaders(Schema):
    """The key under which a request for a run may be repeated safely."""

    idempotency_key = key_header()


class SteerHeaders(Schema):
    """The version that the caller has seen."""

    if_match = fields.String(
        data_key="If-Match",
        load_default=None,
        validate=ENTITY_TAGS,
        metadata={"description": "The ETag that you saw: 412, and nothing changes, if the run has another now."},
    )


class CloneHeaders(EnqueueHeaders, SteerHeaders):
    """The request's idempotency key, and the version that the caller saw."""


class RunSchema(AnswerSchema):
    """A run, with its status and what happened so far."""

    id = fields.Integer()
    definition_id = fields.Integer(allow_none=True, metadata={"description": "The definition that it belongs to."})
    definition = fields.String(allow_none=True, metadata={"description": "That definition's name."})
    job_type = fields.String()
    status = fields.String(validate=validate.OneOf([*Status]))
    payload = fields.Dict(keys=fields.String())
    result = fields.Raw(allow_none=True)
    progress = fields.Raw(allow_none=True)
    queue = fields.String()
    priority = fields.Integer()
    attempts = fields.Integer()
    max_attempts = fields.Integer()
    lease_no = fields.Integer()
    natural_key = fields.String(
        allow_none=True, metadata={"description": "The fact that the run is about, as its type reads it."}
    )
    idempotency_key = fields.String(
        allow_none=True, metadata={"description": "The key that the request was sent with."}
    )
    key_owner = fields.String(
        allow_none=True, metadata={"description": "Who sent that key: `api:` and the API key's name, `cli` or `app`."}
    )
    run_at = fields.AwareDateTime()
    scheduled_for = fields.AwareDateTime(allow_none=True)
    locked_by = fields.String(allow_none=True)
    locked_until = fields.AwareDateTime(allow_none=True)
    cancel_requested_at = fields.AwareDateTime(allow_none=True)
    last_error = fields.String(allow_none=True)
    error_type = fields.String(allow_none=True)
    failed_at = fields.AwareDateTime(allow_none=True)
    created_by = fields.String(allow_none=True)
    created_at = fields.AwareDateTime()
    started_at = fields.AwareDateTime(allow_none=True)
    finished_at = fields.AwareDateTime(allow_none=True)
    updated_at = fields.AwareDateTime()
    pruned_at = fields.AwareDateTime(
        allow_none=True,
        metadata={"description": "When payload, result and errors were deleted; the key is kept."},
    )
    allowed_events = fields.List(
        fields.String(validate=validate.OneOf([*Event])),
        metadata={"description": "What an operator can do with it now."},
    )

    @pre_dump
    def _with_what_is_allowed(self, run: Row, **_: Any) -> Row:
        return {**run, "allowed_events": allowed_events(run)} if "pruned_at" in run else run


class ListedRunSchema(RunSchema):
    """A run in a list: `payload` and `result` are left out unless the request includes them."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """marshmallow's hook, by which OpenAPI describes it so."""
        field_obj.required = field_name not in LARGE


class CountSchema(AnswerSchema):
    """The number of matching runs."""

    value = fields.Integer()
    capped = fields.Boolean(metadata={"description": "Counted among the newest 20,000 of an index; there may be more."})


class RunListSchema(Schema):
    """A page, the newest first."""

    items = fields.List(fields.Nested(ListedRunSchema), required=True)
    next = fields.String(
        required=True,
        allow_none=True,
        metadata={
            "description": "The cursor of the next page; null at the end.  A page ends after scanning 20,000 runs,"
            " or with about 1 MiB of JSON, and may then be short or empty and still have a next one."
        },
    )
    count = fields.Nested(CountSchema, metadata={"description": "Only if requested."})


class AttemptsQuery(Schema):
    """The page size and the cursor."""

    limit = fields.Integer(load_default=50, validate=validate.Range(1, 200))
    cursor = fields.String(load_default=None, metadata={"description": "The `next` of the previous page."})


class AttemptSchema(AnswerSchema):
    """An attempt that did not end in success."""

    attempt = fields.Integer()
    lease_no = fields.Integer()
    outcome = fields.String(metadata={"description": "The event that ended it."})
    worker = fields.String()
    started_at = fields.AwareDateTime(allow_none=True)
    ended_at = fields.AwareDateTime()
    error_type = fields.String(allow_none=True)
    error = fields.String(allow_none=True)
    stack = fields.String(allow_none=True)
    permanent = fields.Boolean(metadata={"description": "The error was permanent: no retry."})
    forensics = fields.Raw(allow_none=True, metadata={"description": "How its child process ended, if it had one."})


class AttemptListSchema(AnswerSchema):
    """The attempts of a run, the first one first."""

    items = fields.List(fields.Nested(AttemptSchema))
    next = fields.String(allow_none=True)


class RunEffectListSchema(AnswerSchema):
    """The effects of a run, the first one first; all of them."""

    items = fields.List(fields.Nested(EffectSchema))
    next = fields.String(allow_none=True)


class IfNoneMatchHeaders(Schema):
    """The version that the caller has."""

    if_none_match = fields.String(
        data_key="If-None-Match",
        load_default=None,
        validate=ENTITY_TAGS,
        metadata={"description": "An ETag: 304 if it has not changed."},
    )
