"""The filters of runs that rowcall.queue declares, for lists and operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema
from werkzeug.exceptions import BadRequest

from rowcall.queue import Filter
from rowcall.queue.views.filters import Form
from rowcall.queue.views.lists import LARGE
from rowcall.status import Status
from rowcall_api.http.body import parsed, usable
from rowcall_api.schemas.fields import Moment, Words
from rowcall_api.schemas.lists.pages import FilteredPageQuery
from rowcall_api.schemas.runs import RunFieldsQuery


class JsonObject(fields.String):
    """A JSON object as text in a query, with the same limits as a body."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:
        try:
            read = usable(parsed(value, "it"))
        except BadRequest as error:
            raise ValidationError(str(error.description)) from None
        if not isinstance(read, dict):
            raise ValidationError('must be a JSON object, such as {"user_id": 1}')
        return read


Fields = Mapping[Form, Callable[..., fields.Field[Any]]]

IN_A_BODY: Fields = {
    Form.STATUSES: partial(fields.List, fields.Enum(Status, by_value=True)),
    Form.TEXT: fields.String,
    Form.TIME: Moment,
    Form.OBJECT: partial(fields.Dict, keys=fields.String()),
}

IN_A_QUERY: Fields = {
    **IN_A_BODY,
    Form.STATUSES: partial(Words, fields.Enum(Status, by_value=True)),
    Form.OBJECT: JsonObject,
}

# OpenAPI attributes of each form, besides the filter's description.
MORE_IN_A_BODY: Mapping[Form, Mapping[str, Any]] = {
    Form.TEXT: {"minLength": 1},
    Form.OBJECT: {"example": {"user_id": 1}},
}

MORE_IN_A_QUERY: Mapping[Form, Mapping[str, Any]] = {
    **MORE_IN_A_BODY,
    Form.OBJECT: {"contentMediaType": "application/json", "example": '{"user_id": 1}'},
}


def filter_fields(forms: Fields, more: Mapping[Form, Mapping[str, Any]]) -> dict[str, fields.Field[Any]]:
    """Return each filter as a field, by its name."""
    return {
        spec.name: forms[spec.metadata["form"]](
            metadata={"description": spec.metadata["description"], **more.get(spec.metadata["form"], {})}
        )
        for spec in dataclasses.fields(Filter)
    }


class FilterSchema(Schema):
    """Criteria that a run must match."""

    class Meta:
        """Marshmallow's options: add a field for each filter."""

        include = filter_fields(IN_A_BODY, MORE_IN_A_BODY)


class RunsQuery(RunFieldsQuery, FilteredPageQuery):
    """The filters, the page size and the cursor."""

    class Meta:
        """Marshmallow's options: add a field for each filter."""

        include = filter_fields(IN_A_QUERY, MORE_IN_A_QUERY)

    include = Words(
        fields.String(validate=validate.OneOf(LARGE)),
        load_default=(),
        metadata={
            "description": "Also return these fields of each run. Repeat it, or separate values with commas. With"
            " `fields`, name them there."
        },
    )
    count = fields.Boolean(
        load_default=False,
        truthy={"true"},
        falsy={"false"},
        metadata={
            "description": "Also return how many runs match; counting stops after as many runs as one page scans."
        },
    )

    @validates_schema
    def _include_what_is_chosen(self, query: dict[str, Any], **_: Any) -> None:
        chosen = query["chosen_fields"]
        if chosen and (left_out := [name for name in query["include"] if name not in chosen]):
            why = f"`fields` names all fields of the response: add {', '.join(left_out)} to it"
            raise ValidationError(why, "include")
