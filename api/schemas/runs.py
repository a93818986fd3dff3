"""What a run looks like on its way in and out."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from shared.status import Status


class EnqueueSchema(Schema):
    """A request for a run."""

    job_type = fields.String(required=True, metadata={"example": "noop"})
    payload = fields.Dict(keys=fields.String(), load_default=dict, metadata={"example": {"hello": "world"}})
    run_at = fields.AwareDateTime(
        load_default=None, allow_none=True, metadata={"description": "Not before this time; default: now."}
    )
    queue = fields.String(load_default=None, allow_none=True)
    priority = fields.Integer(
        strict=True, load_default=0, metadata={"description": "A lower number is more urgent; default 0."}
    )
    max_attempts = fields.Integer(strict=True, load_default=None, allow_none=True)


class EnqueueHeaders(Schema):
    """The key under which a request for a run may be repeated safely."""

    idempotency_key = fields.String(
        data_key="Idempotency-Key", load_default=None, validate=validate.Length(min=1, max=255)
    )


class RunSchema(Schema):
    """A run, with its status and what happened so far."""

    id = fields.Integer()
    definition_id = fields.Integer(
        allow_none=True, metadata={"description": "The definition that asked for it; created_by has its name."}
    )
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
    idempotency_key = fields.String(allow_none=True)
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
        metadata={"description": "Since then payload, result and errors are gone, and the key is left."},
    )
