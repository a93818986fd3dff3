"""Fields that several resources share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

from rowcall.base.timestamps import unusable, with_plus
from rowcall.job_types.declaration import ATTEMPTS_MOST, KEY_CHARACTERS, PRIORITY_FIRST, PRIORITY_LAST
from rowcall.queue.views.pages import Order

# RFC 3339 only: Python also reads other forms of ISO 8601, but many clients do not.
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})")

# The years that can be stored, for OpenAPI.
PATTERN = "^([2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-"

EXAMPLE = "2030-03-31T09:00:00+02:00"

# The most items on a page.
PAGE_MOST = 200

# The bounds of a run's options for OpenAPI; the core refuses others.
PRIORITIES = {"minimum": PRIORITY_FIRST, "maximum": PRIORITY_LAST}
ATTEMPTS = {"minimum": 1, "maximum": ATTEMPTS_MOST}

# The names of job types and queues are at most this long.
NAME_CHARACTERS = 63


# Refuse unquoted text: it may be a damaged tag, and If-None-Match with a damaged tag would always pass.
ENTITY_TAGS = validate.Regexp(
    r'^(\*|(W/)?"[!#-~]*"( ?, ?(W/)?"[!#-~]*")*)$', error='must be * or ETags in quotes, such as "3"'
)


class Moment(fields.AwareDateTime):
    """A time with an offset, in the years that can be stored."""

    def __init__(self, metadata: Mapping[str, Any] | None = None, **more: Any) -> None:
        super().__init__(metadata={"pattern": PATTERN, "example": EXAMPLE, **(metadata or {})}, **more)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> datetime:
        text = with_plus(value.upper()) if isinstance(value, str) else ""
        if not MOMENT.fullmatch(text):
            raise ValidationError(f"must be a time with its offset, such as {EXAMPLE}")
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise ValidationError(f"does not exist: {error}; send a time such as {EXAMPLE}") from None
        why = unusable(moment)
        if why:
            raise ValidationError(why)
        return moment


class YesOrNo(fields.Boolean):
    """Only JSON's true and false."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Words(fields.List[Any]):
    """A list in a query: a repeated parameter, or values separated by commas."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return super()._deserialize([word for text in value for word in text.split(",")], attr, data, **kwargs)


def name(**more: Any) -> fields.String:
    """Return the field for the name of a job type or queue."""
    return fields.String(validate=validate.Length(1, NAME_CHARACTERS), **more)


def page_limit() -> fields.Integer:
    """Return the field for the size of a page."""
    return fields.Integer(
        load_default=50, validate=validate.Range(1, PAGE_MOST), metadata={"description": "At most this many on a page."}
    )


def page_order(first: Order = Order.DESC) -> fields.Enum[Order]:
    """Return the field for the order of a list, whose default is `first`."""
    return fields.Enum(
        Order,
        by_value=True,
        load_default=first,
        dump_default=first.value,
        metadata={"description": "`desc`: the newest first; `asc`: the oldest first.", "default": first.value},
    )


def page_cursor(filtered: bool = False) -> fields.String:
    """Return the field for the cursor of a page."""
    same = ", with the same filters" if filtered else ""
    return fields.String(
        load_default=None,
        metadata={"description": f"The `next` of the previous page{same}."},
    )


def key_header() -> fields.String:
    """Return the field for Idempotency-Key, which makes it safe to repeat a request."""
    return idempotency_key(data_key="Idempotency-Key")


def idempotency_key(**more: Any) -> fields.String:
    """Return the field for an idempotency key; a body and the header allow the same keys.

    It must not contain a comma, because HTTP joins repeated headers with commas, nor characters that might be
    changed in a header.
    """
    return fields.String(
        load_default=None,
        validate=[
            validate.Length(1, KEY_CHARACTERS),
            validate.Regexp(
                r"^[!-+\--~]([ -+\--~]*[!-+\--~])?$",
                error="must be one key of printable ASCII characters, without commas or leading or trailing spaces",
            ),
        ],
        metadata={"description": "A request repeated with the same key takes effect only once.", "example": "k-1"},
        **more,
    )
