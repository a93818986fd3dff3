"""Times in requests."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

# The years that shared.queue.moments takes, the whole of it as RFC 3339 writes it.
PATTERN = (
    r"^(2[0-9]{3}|[3-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-[0-9]{2}-[0-9]{2}"
    r"[Tt][0-9]{2}:[0-9]{2}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)


class Moment(fields.AwareDateTime):
    """ISO 8601 with an offset, in the years 2000 to 9998."""

    def __init__(self, **options: Any) -> None:
        options["metadata"] = {"pattern": PATTERN, **options.get("metadata", {})}
        super().__init__(**options)
