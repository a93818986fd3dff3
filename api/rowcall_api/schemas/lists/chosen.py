"""`fields`: which fields of an entry a response has."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import Schema, fields, post_load, validate

from rowcall_api.schemas.fields import Words
from rowcall_api.sparse import choose


class FieldsQuery(Schema):
    """A query with `chosen_fields`; `always` are the fields that identify an entry."""

    always: ClassVar[frozenset[str]] = frozenset({"id"})

    @post_load
    def _choose(self, query: dict[str, Any], **_: Any) -> dict[str, Any]:
        choose(frozenset(query.pop("chosen_fields")), self.always)
        return query


def chosen_fields(entry: type[Schema], always: str = "`id`") -> Words:
    """Return the query's field that selects fields of this entry."""
    return Words(
        fields.String(validate=validate.OneOf([*entry().fields])),
        data_key="fields",
        load_default=(),
        metadata={"description": f"Return only these fields and {always}. Repeat it, or separate values with commas."},
    )
