"""Schemas for requests that wait for a run."""

from __future__ import annotations

from marshmallow import fields, validate

from rowcall_api.schemas.runs import RunFieldsQuery

# Proxies can be configured to wait longer than this, and clients can repeat the request.
LONGEST_WAIT_SECONDS = 60


class WaitQuery(RunFieldsQuery):
    """The fields of the response, and how long it may wait."""

    wait = fields.Integer(
        load_default=0,
        validate=validate.Range(0, LONGEST_WAIT_SECONDS),
        metadata={"description": "Wait up to this many seconds for the run to end."},
    )
