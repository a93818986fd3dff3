"""Schemas for the explanation of a run's status."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.status import Status


class ConditionSchema(Schema):
    """A condition that a run must meet to be claimed."""

    name = fields.String(metadata={"description": "due, attempts, queue, limit, worker, row or broker."})
    holds = fields.Boolean()
    message = fields.String()
    command = fields.String(allow_none=True, metadata={"description": "The command that changes it."})


class ExplainedSchema(Schema):
    """Why a run has its status."""

    run_id = fields.Integer()
    status = fields.String(validate=validate.OneOf([*Status]))
    message = fields.String(metadata={"description": "The reason in one sentence."})
    commands = fields.List(fields.String())
    conditions = fields.List(
        fields.Nested(ConditionSchema), metadata={"description": "Empty if the run is not waiting to be claimed."}
    )
