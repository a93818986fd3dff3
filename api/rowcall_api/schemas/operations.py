"""Schemas for operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from rowcall.access.audit import REASON_CHARACTERS
from rowcall.base.errors import FilterInvalid
from rowcall.queue import Filter
from rowcall.queue.operations import Action, OperationStatus, Requested
from rowcall.queue.operations.preview import COUNTED_MOST, SAMPLES
from rowcall.queue.operations.request import MOST_RUNS
from rowcall.status import Status
from rowcall_api.http.invalid import loaded
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import Moment, YesOrNo
from rowcall_api.schemas.filters import FilterSchema
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import OldestFirstQuery, PageQuery

ACTIONS = validate.OneOf([action.word for action in Action])

COUNTED_ALL = (
    f"Whether all were counted.  Counting stops after {COUNTED_MOST:,} entries of an index; then more may match."
)


def requested_of(sent: Mapping[str, Any]) -> Requested:
    """Return the operation that these fields request; raise FilterInvalid if they are wrong."""
    options = {name: value for name, value in sent.items() if name not in ("action", "filter", "all")}
    return Requested(Action[sent["action"].upper()], Filter(**sent["filter"]), everything=sent["all"], **options)


class RequestedSchema(Schema):
    """The action, and the runs that it is meant for."""

    action = fields.String(required=True, validate=ACTIONS)
    filter = fields.Nested(
        FilterSchema,
        load_default=dict,
        metadata={
            "description": "The same filters as in the list of runs. Without `status`: all statuses to which the"
            " action applies."
        },
    )
    all = YesOrNo(
        load_default=False,
        metadata={"description": "Must be true if the filter is empty, to confirm that all runs are meant."},
    )
    max_runs = fields.Integer(
        strict=True,
        load_default=None,
        allow_none=True,
        validate=validate.Range(1, MOST_RUNS),
        metadata={"description": "Change at most this many runs, the newest first. Default: all that match."},
    )
    run_at = Moment(
        load_default=None,
        allow_none=True,
        metadata={"description": "When the runs should be due. Required for `reschedule`, and only allowed there."},
    )

    def handle_error(self, error: ValidationError, data: Any, **_: Any) -> None:
        """Add what the core would refuse in the fields that could be loaded (marshmallow's hook)."""
        more: Mapping[str, object] = {}
        sent = {"all": True, **loaded(error)}
        if {"action", "filter"} <= sent.keys():
            try:
                requested_of(sent)
            except FilterInvalid as invalid:
                inside = invalid.fields.keys() <= vars(Filter()).keys()
                more = {"filter": invalid.fields} if inside else invalid.fields
        raise ValidationError({**more, **error.messages_dict})


class StartSchema(RequestedSchema):
    """The action and its runs, with the options of the operation."""

    canary = YesOrNo(
        load_default=False,
        metadata={"description": "Change only the first run, and wait for `continue` before the others."},
    )
    reason = fields.String(
        load_default=None,
        allow_none=True,
        validate=validate.Length(1, REASON_CHARACTERS),
        metadata={
            "description": "The reason, shown with the operation and in the audit log.",
            "example": "the mail server was down",
        },
    )


class SampleSchema(AnswerSchema):
    """A run that matches; without the scope `read`, only its id and status."""

    least = ("id", "status")

    id = fields.Integer()
    status = fields.String(validate=validate.OneOf([*Status]))
    job_type = fields.String()
    queue = fields.String()
    run_at = fields.AwareDateTime()
    error_type = fields.String(allow_none=True)
    created_at = fields.AwareDateTime()


class OperationPreviewSchema(AnswerSchema):
    """What an operation would change now."""

    matched = fields.Integer(
        metadata={
            "description": "How many runs match and have a status that allows the action.  Some may still be refused,"
            " such as all but one of the runs that share a natural key."
        }
    )
    left_out = fields.Integer(metadata={"description": "How many more match, beyond `max_runs`."})
    counted_all = fields.Boolean(metadata={"description": COUNTED_ALL})
    by_status = fields.Dict(
        keys=fields.String(validate=validate.OneOf([*Status])),
        values=fields.Integer(),
        metadata={"description": "How many of them have each status."},
    )
    samples = fields.List(
        fields.Nested(SampleSchema), metadata={"description": f"Up to {SAMPLES} of them, the newest first."}
    )
    unresolved = fields.Integer(
        allow_none=True,
        metadata={
            "description": "For a `retry`: how many of these runs cannot succeed until an operator resolves an effect"
            " that may have happened and must not be repeated. Null for other actions."
        },
    )


class OperationSchema(AnswerSchema):
    """An operation."""

    id = fields.Integer()
    status = fields.String(validate=validate.OneOf([*OperationStatus]))
    action = fields.String(validate=ACTIONS)
    filter = fields.Dict(keys=fields.String(), metadata={"description": "The filter as it was sent."})
    run_at = fields.AwareDateTime(allow_none=True)
    max_runs = fields.Integer(allow_none=True)
    canary = fields.Boolean()
    reason = fields.String(allow_none=True)
    matched = fields.Integer(metadata={"description": "How many runs matched when it was requested."})
    counted_all = fields.Boolean(metadata={"description": COUNTED_ALL})
    changed = fields.Integer(
        metadata={
            "description": "How many runs it has changed so far. A `cancel` counts the waiting runs that it cancelled,"
            " and the running ones whose workers it asked to stop."
        }
    )
    refused = fields.Integer(metadata={"description": "How many it refused to change; `refusals` says why."})
    canary_run_id = fields.Integer(
        allow_none=True, metadata={"description": "The run that was changed first, as the canary."}
    )
    run_id = fields.Integer(
        allow_none=True,
        metadata={"description": "The run that carries it out; its `explain` says what it is waiting for."},
    )
    requested_by = fields.String()
    idempotency_key = fields.String(allow_none=True)
    created_at = fields.AwareDateTime()
    updated_at = fields.AwareDateTime()
    finished_at = fields.AwareDateTime(allow_none=True)


class PartialOperationSchema(OperationSchema):
    """An operation; without the scope `read`, only its id and status."""

    least = ("id", "status")


class OperationsQuery(PageQuery):
    """The page of operations."""

    chosen_fields = chosen_fields(OperationSchema)


class OperationListSchema(AnswerSchema):
    """A page of operations, the newest first."""

    items = page_items(OperationSchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page; null on the last."})


class RefusalSchema(AnswerSchema):
    """A run that an operation did not change."""

    run_id = fields.Integer()
    reason = fields.String()
    refused_at = fields.AwareDateTime()


class RefusalsQuery(OldestFirstQuery):
    """The page of refusals."""

    always = frozenset({"run_id"})
    chosen_fields = chosen_fields(RefusalSchema, "`run_id`")


class RefusalListSchema(AnswerSchema):
    """A page of refusals, by the ids of the runs; an operation keeps the first 10,000."""

    items = page_items(RefusalSchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page; null on the last."})
