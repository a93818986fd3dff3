"""Its one job type."""

from __future__ import annotations

from marshmallow import Schema, fields

from rowcall import JobType


class Numbered(Schema):
    """A job's number."""

    number = fields.Integer(required=True)


NOTHING = JobType("bench_nothing", schema=Numbered)
