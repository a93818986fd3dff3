"""Schemas for enqueuing many runs in one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate

from rowcall.queue import BATCH_MOST, BatchRun, faults_of
from rowcall_api.http.invalid import NOT_AN_OBJECT, loaded
from rowcall_api.schemas.answers import AnswerSchema
from rowcall_api.schemas.fields import idempotency_key
from rowcall_api.schemas.runs import EnqueueSchema


class BatchRunSchema(EnqueueSchema):
    """A run of a batch, with an idempotency key of its own."""

    idempotency_key = idempotency_key(allow_none=True)

    @post_load
    def _as_request(self, sent: dict[str, Any], **_: Any) -> BatchRun:
        return BatchRun(**sent)


class BatchSchema(Schema):
    """The runs to enqueue."""

    error_messages = {"type": NOT_AN_OBJECT}  # noqa: RUF012 - marshmallow's

    runs = fields.List(fields.Nested(BatchRunSchema), required=True, validate=validate.Length(1, BATCH_MOST))

    def handle_error(self, error: ValidationError, data: Any, **_: Any) -> None:
        """Add the faults of the runs that could be loaded (marshmallow's hook); the others already have theirs."""
        messages = error.messages_dict
        refused = messages.get("runs", {})
        if not isinstance(refused, Mapping):
            return
        runs = [run for run in loaded(error).get("runs", ()) if isinstance(run, BatchRun)]
        places = [place for place in range(len(runs) + len(refused)) if place not in refused]
        more = {place: wrong for place, run in zip(places, runs, strict=True) if (wrong := faults_of(vars(run)))}
        raise ValidationError({**messages, "runs": {**refused, **more}})


class BatchOutcomeSchema(AnswerSchema):
    """The outcome for one run of the batch."""

    id = fields.Integer()
    replayed = fields.Boolean(metadata={"description": "The run already existed: an earlier request had the same key."})


class BatchOutcomesSchema(AnswerSchema):
    """The runs, in the order of the request."""

    items = fields.List(fields.Nested(BatchOutcomeSchema))
    new = fields.Integer(metadata={"description": "How many of them are new."})
