"""The answer to why a run has not run."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.status import Status


class ConditionSchema(Schema):
    """One condition of the claim."""

    name = fields.String(metadata={"description": "due, attempts, queue, limit, worker or row."})
    holds = fields.Boolean()
    message = fields.String()
    command = fields.String(allow_none=True, metadata={"description": "The command that would change it."})


class ExplainedSchema(Schema):
    """Why a run has its status."""

    run_id = fields.Integer()
    status = fields.String(validate=validate.OneOf([*Status]))
    message = fields.String(metadata={"description": "A sentence."})
    commands = fields.List(fields.String())
    conditions = fields.List(
        fields.Nested(ConditionSchema), metadata={"description": "Empty if the run does not wait for a claim."}
    )
