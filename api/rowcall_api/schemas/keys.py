"""Schemas for API keys."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, validate

from rowcall.access.api_keys import LIMIT, NAME, SCOPES
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import Moment
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import PageQuery

# The most job types or queues to which a key can be limited.
NAMES_MOST = 1000

DAY_SECONDS = 24 * 60 * 60

STATES = ("active", "expires", "expired", "revoked")


FORM_OF_NAME = (
    "must be 1 to 100 letters, digits, spaces and . _ @ -, with a letter or digit at both ends, such as billing"
)


def _names(description: str) -> fields.List[Any]:
    return fields.List(
        fields.String(
            validate=validate.Regexp(
                f"^{LIMIT.pattern}$", error="must be lower-case words such as send_mail, not {input}"
            )
        ),
        load_default=None,
        allow_none=True,
        validate=validate.Length(1, NAMES_MOST),
        metadata={"description": description},
    )


class NewKeySchema(Schema):
    """A key to create."""

    name = fields.String(
        required=True,
        validate=validate.Regexp(f"^{NAME.pattern}$", error=FORM_OF_NAME),
        metadata={"description": "A name that no other valid key has.", "example": "billing"},
    )
    scopes = fields.List(
        fields.String(validate=validate.OneOf(SCOPES)),
        required=True,
        validate=validate.Length(1, error=f"must be one or more of {', '.join(SCOPES)}"),
    )
    job_types = _names("Only runs of these job types may be enqueued and changed; default: all.")
    queues = _names("Only runs of these queues may be enqueued and changed; default: all.")
    expires_at = Moment(
        load_default=None,
        allow_none=True,
        metadata={"description": "Default: never. The new key must not outlive the key that sends this request."},
    )


class RotationSchema(Schema):
    """How to replace a key."""

    grace_seconds = fields.Integer(
        strict=True,
        load_default=DAY_SECONDS,
        validate=validate.Range(0, 366 * DAY_SECONDS),
        metadata={"description": "How long the old key keeps working."},
    )


class KeySchema(AnswerSchema):
    """A key, without its secret."""

    id = fields.Integer()
    name = fields.String(metadata={"description": "It stays the same when the key is rotated."})
    prefix = fields.String(metadata={"description": "The part of the key that is not secret."})
    scopes = fields.List(fields.String(validate=validate.OneOf(SCOPES)))
    job_types = fields.List(
        fields.String(), allow_none=True, metadata={"description": "Null if the key is not limited to job types."}
    )
    queues = fields.List(
        fields.String(), allow_none=True, metadata={"description": "Null if the key is not limited to queues."}
    )
    state = fields.String(validate=validate.OneOf(STATES))
    created_at = fields.AwareDateTime()
    expires_at = fields.AwareDateTime(allow_none=True)
    last_used_at = fields.AwareDateTime(allow_none=True, metadata={"description": "Recorded at most once a minute."})
    revoked_at = fields.AwareDateTime(allow_none=True)
    replaced_at = fields.AwareDateTime(
        allow_none=True,
        metadata={"description": "When a newer key took over its name; this key works until `expires_at`."},
    )


class KeysQuery(PageQuery):
    """The page size and the cursor."""

    chosen_fields = chosen_fields(KeySchema)


class CreatedKeySchema(KeySchema):
    """A new key with its secret."""

    key = fields.String(
        metadata={"description": "The key to send. It is not shown again, and only its hash is stored."}
    )


class RotatedKeySchema(CreatedKeySchema):
    """A new key that replaces another one."""

    replaces = fields.Integer(metadata={"description": "The id of the old key."})
    old_ends_at = fields.AwareDateTime(metadata={"description": "When the old key stops working."})


class KeyListSchema(AnswerSchema):
    """A page of keys, the newest first."""

    items = page_items(KeySchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})


class RateLimitSchema(AnswerSchema):
    """The limit that the header `RateLimit-Policy` reports."""

    quota = fields.Integer(metadata={"description": "How many requests may be made at once."})
    window = fields.Integer(metadata={"description": "Seconds."})


class OwnKeySchema(KeySchema):
    """The key of the request."""

    rate_limit = fields.Nested(RateLimitSchema, allow_none=True, metadata={"description": "Null if there is none."})
