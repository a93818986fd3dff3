"""Which runs are asked for, in a list or for many at once."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate
from werkzeug.exceptions import BadRequest

from rowcall.status import Status
from rowcall_api.http.body import parsed, usable
from rowcall_api.schemas.fields import Moment, Words


class FilterSchema(Schema):
    """What a run must be like; what is left out is left open."""

    status = fields.List(fields.Enum(Status, by_value=True), metadata={"description": "One of these."})
    job_type = fields.String()
    queue = fields.String()
    definition = fields.String(metadata={"description": "The name of the definition that it is a run of."})
    key = fields.String(metadata={"description": "Its idempotency key, exactly."})
    error_type = fields.String(metadata={"description": "Of its latest error."})
    created_by = fields.String(metadata={"description": "Who asked for it: the name of an API key, or cli:<user>."})
    created_after = Moment(metadata={"description": "At this time or later."})
    created_before = Moment(metadata={"description": "Before this time."})
    run_after = Moment(metadata={"description": "Its `run_at` is this time or later."})
    run_before = Moment(metadata={"description": "Its `run_at` is before this time."})
    finished_after = Moment(metadata={"description": "Finished at this time or later."})
    finished_before = Moment(metadata={"description": "Finished before this time."})
    payload = fields.Dict(
        keys=fields.String(),
        metadata={"description": "What its payload must contain.", "example": {"user_id": 1}},
    )


class JsonObject(fields.String):
    """In a query: a JSON object as text, within the bounds of a body."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        try:
            read = usable(parsed(value, "it"))
        except BadRequest as error:
            raise ValidationError(str(error.description)) from None
        if not isinstance(read, dict):
            raise ValidationError('is no JSON object: send one such as {"user_id": 1}')
        return read


class RunsQuery(FilterSchema):
    """Which runs, how many, and from where on."""

    status = Words(
        fields.Enum(Status, by_value=True), metadata={"description": "One of these; repeat it, or write commas."}
    )
    payload = JsonObject(  # type: ignore[assignment]  # an object, which in a query is text
        metadata={
            "description": "What its payload must contain, as a JSON object.",
            "contentMediaType": "application/json",
            "example": '{"user_id": 1}',
        }
    )
    limit = fields.Integer(load_default=50, validate=validate.Range(1, 200))
    cursor = fields.String(
        load_default=None, metadata={"description": "The `next` of the page before, with the same filters."}
    )
    count = fields.Boolean(
        load_default=False,
        truthy={"true"},
        falsy={"false"},
        metadata={"description": "Also say how many match, of as many as a page would look at."},
    )
