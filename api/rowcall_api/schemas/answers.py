"""Parts that answers share."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields


class AnswerSchema(Schema):
    """An answer with every field: unknown values are null."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """marshmallow's hook, by which OpenAPI describes it so."""
        field_obj.required = True
