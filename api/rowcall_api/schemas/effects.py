"""Schemas for effects, their filters, and an operator's resolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from rowcall.base.database import LARGEST_ID
from rowcall.effects import KINDS, STATES
from rowcall.effects.kinds import REFERENCE_CHARACTERS
from rowcall.job_types.declaration import NAME
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.fields import Words, YesOrNo
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import FilteredPageQuery, OldestFirstQuery

KIND = f"{', '.join(KINDS)}, or a kind that the app declares."


class EffectSchema(AnswerSchema):
    """An external side effect that a run performed or tried to perform."""

    kind = fields.String(metadata={"description": KIND})
    id = fields.Integer(metadata={"description": "Unique within its kind."})
    key = fields.String(metadata={"description": "Unique among the effects of its kind."})
    state = fields.String(validate=validate.OneOf(STATES))
    run_id = fields.Integer(metadata={"description": "The last run that began it."})
    lease_no = fields.Integer(metadata={"description": "The lease number of the last attempt that began it."})
    generation = fields.Integer(
        metadata={
            "description": "Incremented each time the effect is permanently refused, or an operator records that it"
            " did not happen, so that a later try is a new generation."
        }
    )
    reference = fields.String(allow_none=True, metadata={"description": "The provider's id for it."})
    refusal = fields.String(
        allow_none=True, metadata={"description": "Why it was refused, or why its outcome is unknown."}
    )
    intent_at = fields.AwareDateTime()
    applied_at = fields.AwareDateTime(allow_none=True)


class DetailedEffectSchema(EffectSchema):
    """An effect with what its kind records."""

    details = fields.Dict(
        metadata={
            "description": "The parts of its key, and the columns of its kind that have a value: an email's"
            " `message_id`, `recipient` and `subject`, a payment's `invoice_id`, `amount_minor` and `currency`, a"
            " webhook's `url`. An erased effect has only its key and, if its outcome was unknown, its `message_id`."
        }
    )


class PartialEffectSchema(EffectSchema):
    """An effect; without the scope `read`, only its kind, id and state."""

    least = ("kind", "id", "state")


class EffectsQuery(FilteredPageQuery):
    """The filters, the page size and the cursor."""

    kind = fields.String(
        load_default=None, validate=validate.Regexp(f"^{NAME.pattern}$"), metadata={"description": KIND}
    )
    state = Words(
        fields.String(validate=validate.OneOf(STATES)),
        load_default=(),
        metadata={"description": "Only effects in one of these states. Repeat it, or separate values with commas."},
    )
    run_id = fields.Integer(
        load_default=None,
        validate=validate.Range(1, LARGEST_ID),
        metadata={"description": "Only effects that this run was the last to attempt."},
    )
    always = frozenset({"kind", "id"})
    chosen_fields = chosen_fields(EffectSchema, "`kind` and `id`")


class EffectListSchema(AnswerSchema):
    """A page, the newest first."""

    items = page_items(EffectSchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})


class RunEffectsQuery(OldestFirstQuery):
    """The page of a run's effects."""

    always = frozenset({"kind", "id"})
    chosen_fields = chosen_fields(EffectSchema, "`kind` and `id`")


class RunEffectListSchema(AnswerSchema):
    """The effects of a run, the oldest first."""

    items = page_items(EffectSchema)
    next = fields.String(allow_none=True)


class ResolveSchema(Schema):
    """Whether an unknown effect happened, as an operator found out."""

    happened = YesOrNo(
        required=True,
        metadata={"description": "Check with the provider first: if false, the next attempt of the run performs it."},
    )
    reference = fields.String(
        load_default=None,
        allow_none=True,
        validate=validate.Length(1, REFERENCE_CHARACTERS),
        metadata={"description": "The provider's id for it, if it happened."},
    )

    @validates_schema
    def check_reference(self, data: Mapping[str, Any], **_: Any) -> None:
        """Refuse a reference for an effect that did not happen, or one with unprintable characters."""
        reference = data["reference"]
        if reference is not None and not data["happened"]:
            raise ValidationError("is only allowed if `happened` is true", "reference")
        if reference is not None and not reference.isprintable():
            raise ValidationError("must contain only printable characters", "reference")
