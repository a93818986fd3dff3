"""What answers have in common."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields


class AnswerSchema(Schema):
    """An answer that leaves nothing out: what is not known is null."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """marshmallow's hook, which lets the interface's description say so."""
        field_obj.required = True
