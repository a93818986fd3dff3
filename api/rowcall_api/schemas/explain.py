"""What is said of why a run has not run."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from rowcall.status import Status


class ConditionSchema(Schema):
    """One condition of the claim."""

    name = fields.String(metadata={"description": "due, attempts, queue, limit, worker or row."})
    holds = fields.Boolean()
    told = fields.String()
    command = fields.String(allow_none=True, metadata={"description": "What would change it."})


class ExplainedSchema(Schema):
    """Why a run stands where it stands."""

    run_id = fields.Integer()
    status = fields.String(validate=validate.OneOf([*Status]))
    told = fields.String(metadata={"description": "In plain words."})
    commands = fields.List(fields.String())
    conditions = fields.List(
        fields.Nested(ConditionSchema), metadata={"description": "Empty where no claim is waited for."}
    )
