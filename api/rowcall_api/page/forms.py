"""Reads forms with the schemas of the API, so that the page refuses the same values, with a sentence for each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import flask
import marshmallow

from rowcall.access.audit import Operator, wrong_with_reason
from rowcall_api.http.auth import operator
from rowcall_api.http.invalid import flat, pointer


def loaded(schema: marshmallow.Schema, sent: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a form as a request to the API would have them, and what is wrong with each field."""
    try:
        values: dict[str, Any] = schema.load(sent)
    except marshmallow.ValidationError as error:
        told: dict[str, Any] = error.normalized_messages()  # type: ignore[no-untyped-call]
        return {}, {name: in_a_sentence(why) for name, why in told.items()}
    return values, {}


def in_a_sentence(wrong: object) -> str:
    """Return what is wrong with a field, joining what marshmallow says about several places in it."""
    told = (
        f"{pointer(one.place)}: {one.why}" if any(isinstance(part, str) for part in one.place) else one.why
        for one in flat(wrong)
    )
    return "; ".join(dict.fromkeys(told))


def text(name: str) -> str | None:
    """Return a field of the form without the spaces around its text; None if it is empty."""
    return flask.request.form.get(name, "").strip() or None


def with_reason() -> tuple[Operator, dict[str, str]]:
    """Return the operator with the reason from the form, and what is wrong with the reason."""
    reason = text("reason")
    if wrong := wrong_with_reason(reason):
        return operator(), {"reason": wrong}
    return replace(operator(), reason=reason), {}
