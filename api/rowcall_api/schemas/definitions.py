"""Schemas for definitions, their occurrences and their previews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, missing, validate
from marshmallow.types import StrSequenceOrSet, UnknownOption
from werkzeug.datastructures import ETags
from werkzeug.http import parse_etags

from rowcall.base.database import Row
from rowcall.definitions import ContentSchema, Duration, Precondition, version_of
from rowcall.schedule import Outcome, Overlap
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import ENTITY_TAGS, page_cursor
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import PageQuery


class StateSchema(Schema):
    """The state of a definition, besides its content."""

    name = fields.String(dump_only=True)
    id = fields.Integer(
        dump_only=True,
        metadata={"description": "The `definition_id` of its runs, and the `subject_id` of its audited changes."},
    )
    revision = fields.Integer(dump_only=True, metadata={"description": "Incremented by each change to the content."})
    managed_by = fields.String(
        dump_only=True,
        validate=validate.OneOf(("api", "code", "file")),
        metadata={"description": "Where its content comes from: a file, the code or the API."},
    )
    next_run_at = fields.AwareDateTime(
        dump_only=True, allow_none=True, metadata={"description": "The next nominal time to be processed."}
    )
    paused_at = fields.AwareDateTime(dump_only=True, allow_none=True)
    created_at = fields.AwareDateTime(dump_only=True)
    updated_at = fields.AwareDateTime(dump_only=True)


STATE = StateSchema().fields.keys() - {"name"}


class DefinitionSchema(ContentSchema, StateSchema, AnswerSchema):
    """A definition in a response."""

    class Meta:
        """Marshmallow's options: empty, so that the parent's `include` does not add its fields again."""

    max_lateness = Duration(allow_none=True, metadata={"type": "number", "description": "Seconds."})
    jitter = Duration(metadata={"type": "number", "description": "Seconds."})
    overlap = fields.Enum(Overlap, by_value=True)

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Marshmallow's hook: a response contains every field, so none has a default."""
        super().on_bind_field(field_name, field_obj)
        field_obj.load_default = missing


class PartialDefinitionSchema(DefinitionSchema):
    """A definition; without the scope `read`, only its name and when it was paused."""

    least = ("name", "paused_at")


class SentDefinitionSchema(ContentSchema, StateSchema):
    """A definition in a request."""

    def load(
        self,
        data: Any,
        *,
        many: bool | None = None,
        partial: bool | StrSequenceOrSet | None = None,
        unknown: UnknownOption | None = None,
    ) -> dict[str, Any]:
        """Return the fields unchecked (webargs' hook); `checked` later reports all errors in one response."""
        if not isinstance(data, Mapping):
            raise ValidationError({"_schema": ["must be an object with fields such as job_type"]})
        return {name: value for name, value in data.items() if name not in STATE}


def tagged(row: Row) -> dict[str, str]:
    """Return the ETag header of this definition."""
    return {"ETag": f'"{version_of(row)}"'}


class ChangeHeaders(Schema):
    """The version of the definition that the caller expects."""

    if_match = fields.String(
        data_key="If-Match",
        validate=ENTITY_TAGS,
        metadata={
            "description": "The ETag that you expect. If the definition has changed since, the response is 412.",
            "example": '"3"',
        },
    )


class PutHeaders(ChangeHeaders):
    """The version that the caller expects, and those that the definition must not have."""

    if_none_match = fields.String(
        data_key="If-None-Match",
        validate=ENTITY_TAGS,
        metadata={"description": "With *, the response is 412 if the definition exists.", "example": "*"},
    )


def condition_of(headers: Mapping[str, str]) -> Precondition:
    """Return the condition in these headers: If-Match compares strongly, If-None-Match weakly (RFC 9110)."""
    match, none_match = headers.get("if_match"), headers.get("if_none_match")
    return Precondition(
        None if match is None else parse_etags(match),
        None if none_match is None else _weakly(parse_etags(none_match)),
    )


def _weakly(tags: ETags) -> ETags:
    return ETags(tags.as_set(include_weak=True), star_tag=tags.star_tag)


class OccurrenceSchema(Schema):
    """One nominal time and its outcome."""

    nominal_at = fields.AwareDateTime()
    outcome = fields.String(validate=validate.OneOf([*Outcome]))
    reason = fields.String(allow_none=True)
    run_id = fields.Integer(allow_none=True)
    revision = fields.Integer()
    created_at = fields.AwareDateTime()


class PreviewQuery(Schema):
    """The start and the end of a preview."""

    start = fields.String(
        data_key="from",
        attribute="from",
        load_default="now",
        metadata={"description": "The start, in ISO 8601 or in words such as tomorrow 09:00; default: now."},
    )
    until = fields.String(metadata={"description": "Show all nominal times up to this time."})
    asleep = fields.String(metadata={"description": "Show what would happen after an outage from `from` to this time."})
    count = fields.Integer(
        load_default=10,
        validate=validate.Range(1, 1000),
        metadata={"description": "How many nominal times, if neither `until` nor `asleep` is given."},
    )


class ShownSchema(Schema):
    """One future nominal time and its outcome."""

    name = fields.String()
    nominal_at = fields.AwareDateTime()
    wall = fields.String(metadata={"description": "The local time in the definition's zone."})
    outcome = fields.String(
        validate=validate.OneOf([*Outcome]),
        metadata={"description": "The decision of a tick. While the definition is paused: skipped."},
    )
    run_at = fields.AwareDateTime(allow_none=True)
    note = fields.String(allow_none=True)


class OccurrencesQuery(PageQuery):
    """The page size and the cursor."""

    always = frozenset({"nominal_at"})
    chosen_fields = chosen_fields(OccurrenceSchema, "`nominal_at`")


class DefinitionsQuery(Schema):
    """The cursor of the page."""

    cursor = page_cursor()


class DefinitionListSchema(Schema):
    """A page of definitions, by name."""

    items = fields.List(fields.Nested(DefinitionSchema), required=True)
    next = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "The cursor of the next page. A page ends at about 1 MiB of JSON."},
    )


class OccurrenceListSchema(Schema):
    """A page of occurrences, the latest first."""

    items = page_items(OccurrenceSchema, required=True)
    next = fields.String(required=True, allow_none=True, metadata={"description": "The cursor of the next page."})


class PreviewSchema(Schema):
    """Future nominal times, the earliest first."""

    items = fields.List(fields.Nested(ShownSchema), required=True)
