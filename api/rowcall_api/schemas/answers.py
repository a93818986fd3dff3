"""Parts that responses share."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import Schema, fields

from rowcall_api.schemas.fields import PAGE_MOST


class AnswerSchema(Schema):
    """A response with all its fields: unknown values are null.

    A schema with `least` describes a response that has only these fields if the key lacks the scope `read`.
    """

    least: ClassVar[tuple[str, ...]] = ()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Marshmallow's hook: mark as required the fields that every response has, so that OpenAPI says so."""
        field_obj.required = not self.least or field_name in self.least


def page_items(schema: type[Schema], **more: Any) -> fields.List[Any]:
    """Return the field that holds the items of a paginated list."""
    return fields.List(fields.Nested(schema), metadata={"maxItems": PAGE_MOST}, **more)
