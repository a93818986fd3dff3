"""Schemas for runs, their attempts and their logs."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_dump, validate

from rowcall.base.database import Row
from rowcall.base.logs import LEVELS
from rowcall.queue import allowed_events, faults_of, version_of
from rowcall.status import Event, Status
from rowcall_api.http.invalid import NOT_AN_OBJECT, loaded
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import (
    ATTEMPTS,
    ENTITY_TAGS,
    PRIORITIES,
    Moment,
    YesOrNo,
    key_header,
    name,
)
from rowcall_api.schemas.lists.chosen import FieldsQuery, chosen_fields
from rowcall_api.schemas.lists.pages import OldestFirstQuery


def tagged(run: Row) -> dict[str, str]:
    """Return the ETag header of this run."""
    return {"ETag": f'"{version_of(run)}"'}


class WholeRequestSchema(Schema):
    """A request for a run: if it is refused, the response also names what `enqueue` would refuse."""

    error_messages = {"type": NOT_AN_OBJECT}  # noqa: RUF012 - marshmallow's

    def handle_error(self, error: ValidationError, data: Any, **_: Any) -> None:
        """Add the faults of the fields that could be loaded (marshmallow's hook)."""
        raise ValidationError({**faults_of(loaded(error)), **error.messages_dict}, valid_data=error.valid_data)


class EnqueueSchema(WholeRequestSchema):
    """A request to enqueue a run."""

    job_type = name(required=True, metadata={"example": "noop"})
    payload = fields.Dict(
        keys=fields.String(),
        load_default=dict,
        error_messages={"invalid": NOT_AN_OBJECT},
        metadata={"example": {"hello": "world"}, "description": "The input of the run, as its job type requires."},
    )
    run_at = Moment(load_default=None, allow_none=True, metadata={"description": "Not before this time; default: now."})
    queue = name(load_default=None, allow_none=True, metadata={"description": "Default: the queue of the type."})
    priority = fields.Integer(
        strict=True, load_default=0, metadata={"description": "A lower number is more urgent; default 0.", **PRIORITIES}
    )
    max_attempts = fields.Integer(
        strict=True,
        load_default=None,
        allow_none=True,
        metadata={"description": "Give up after this many attempts; default: the type's.", **ATTEMPTS},
    )


class CloneSchema(WholeRequestSchema):
    """The fields of the clone that differ from the original."""

    payload = fields.Dict(
        keys=fields.String(),
        allow_none=True,
        metadata={"example": {"hello": "again"}, "description": "The payload; default: the original's."},
    )
    run_at = Moment(allow_none=True, metadata={"description": "Not before this time; default: now."})
    queue = name(allow_none=True, metadata={"description": "The queue; default: the original's."})
    priority = fields.Integer(
        strict=True,
        allow_none=True,
        metadata={"description": "A lower number is more urgent; default: the original's.", **PRIORITIES},
    )
    max_attempts = fields.Integer(
        strict=True,
        allow_none=True,
        metadata={"description": "Give up after this many attempts; default: the original's.", **ATTEMPTS},
    )


class CancelSchema(Schema):
    """The options of a cancellation."""

    force = YesOrNo(
        load_default=False,
        metadata={
            "description": "Cancel a running run without waiting for its worker, and refuse the worker's later writes."
        },
    )


class RescheduleSchema(Schema):
    """When the run should be due."""

    run_at = Moment(required=True, metadata={"description": "Not before this time."})


class EnqueueHeaders(Schema):
    """The idempotency key, which makes it safe to repeat the request."""

    idempotency_key = key_header()


class SteerHeaders(Schema):
    """The version of the run that the caller expects."""

    if_match = fields.String(
        data_key="If-Match",
        load_default=None,
        validate=ENTITY_TAGS,
        metadata={"description": "The ETag that you expect. If the run has changed since, the response is 412."},
    )


class CloneHeaders(EnqueueHeaders, SteerHeaders):
    """The idempotency key, and the version of the run that the caller expects."""


class RunSchema(AnswerSchema):
    """A run."""

    id = fields.Integer()
    definition_id = fields.Integer(allow_none=True, metadata={"description": "The definition that enqueued it."})
    definition = fields.String(allow_none=True, metadata={"description": "The name of that definition."})
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
        allow_none=True,
        metadata={
            "description": "The key of what the run is about, such as the charge of invoice 7; its job type derives it."
        },
    )
    idempotency_key = fields.String(allow_none=True, metadata={"description": "The idempotency key of the request."})
    key_owner = fields.String(
        allow_none=True,
        metadata={"description": "Who sent the idempotency key: `api:` and the name of the API key, `cli` or `app`."},
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
    trace_parent = fields.String(
        allow_none=True, metadata={"description": "The W3C traceparent with which the run was enqueued."}
    )
    created_at = fields.AwareDateTime()
    started_at = fields.AwareDateTime(allow_none=True)
    finished_at = fields.AwareDateTime(allow_none=True)
    updated_at = fields.AwareDateTime()
    pruned_at = fields.AwareDateTime(
        allow_none=True,
        metadata={"description": "When the payload, result and errors were deleted; the keys are kept."},
    )
    archived = fields.Boolean(metadata={"description": "Whether it is in the archive table, and can only be cloned."})
    allowed_events = fields.List(
        fields.String(validate=validate.OneOf([*Event])),
        metadata={"description": "What an operator can do with it now."},
    )

    @pre_dump
    def _with_what_is_allowed(self, run: Row, **_: Any) -> Row:
        told = {"archived": False, **run}
        return {**told, "allowed_events": allowed_events(told)} if "pruned_at" in run else run


class PartialRunSchema(RunSchema):
    """A run; without the scope `read`, only its id and status."""

    least = ("id", "status")


class ListedRunSchema(RunSchema):
    """A run in a list: `payload` and `result` are left out unless the request names them."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Marshmallow's hook: require only the id, because a request with `fields` leaves out all others."""
        field_obj.required = field_name == "id"


class RunFieldsQuery(FieldsQuery):
    """The fields of a run that the response has."""

    chosen_fields = chosen_fields(RunSchema)


class CountSchema(AnswerSchema):
    """The number of matching runs."""

    value = fields.Integer()
    capped = fields.Boolean(
        metadata={"description": "Counting stopped after the newest 20,000 runs that were examined; more may match."}
    )


class RunListSchema(Schema):
    """A page of runs, in the requested order."""

    items = page_items(ListedRunSchema, required=True)
    next = fields.String(
        required=True,
        allow_none=True,
        metadata={
            "description": "The cursor of the next page; null on the last page.  A page ends after 20,000 scanned runs"
            " or about 1 MiB of JSON, so a short or empty page may have a next one."
        },
    )
    count = fields.Nested(CountSchema, metadata={"description": "Only if requested."})


class AttemptSchema(AnswerSchema):
    """An attempt that did not succeed."""

    attempt = fields.Integer()
    lease_no = fields.Integer()
    outcome = fields.String(metadata={"description": "The event that ended it."})
    worker = fields.String()
    started_at = fields.AwareDateTime(allow_none=True)
    ended_at = fields.AwareDateTime()
    error_type = fields.String(allow_none=True)
    error = fields.String(allow_none=True)
    stack = fields.String(allow_none=True)
    permanent = fields.Boolean(metadata={"description": "The error was permanent, so the run was not retried."})
    forensics = fields.Raw(
        allow_none=True, metadata={"description": "How the child process ended, if the attempt had one."}
    )


class AttemptsQuery(OldestFirstQuery):
    """The page of attempts."""

    always = frozenset({"lease_no"})
    chosen_fields = chosen_fields(AttemptSchema, "`lease_no`")


class AttemptListSchema(AnswerSchema):
    """The attempts of a run, the oldest first."""

    items = page_items(AttemptSchema)
    next = fields.String(allow_none=True)


class LogLineSchema(AnswerSchema):
    """A line that the handler of a run logged."""

    line_no = fields.Integer(
        metadata={"description": "Its number within the run; a gap in the numbers means that lines were left out."}
    )
    lease_no = fields.Integer(metadata={"description": "The lease of the attempt that logged it."})
    logged_at = fields.AwareDateTime(metadata={"description": "When it was logged, by the database's clock."})
    level = fields.String(validate=validate.OneOf(LEVELS))
    text = fields.String(metadata={"description": "The message and, in further lines, a traceback; without secrets."})


class LogQuery(OldestFirstQuery):
    """The page of a log."""

    always = frozenset({"line_no"})
    chosen_fields = chosen_fields(LogLineSchema, "`line_no`")


class LogSchema(AnswerSchema):
    """The log of a run, the oldest line first."""

    items = page_items(LogLineSchema)
    left_out = fields.Integer(
        metadata={"description": "How many lines of the run are not kept: a run keeps only its newest lines."}
    )
    next = fields.String(allow_none=True)


class IfNoneMatchHeaders(Schema):
    """The version of the run that the caller has."""

    if_none_match = fields.String(
        data_key="If-None-Match",
        load_default=None,
        validate=ENTITY_TAGS,
        metadata={"description": "An ETag. If it is still the run's ETag, the response is 304."},
    )
