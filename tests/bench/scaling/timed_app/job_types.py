"""Its job type."""

from __future__ import annotations

from marshmallow import Schema, fields

from rowcall import JobType


class Work(Schema):
    """How long the work takes."""

    seconds = fields.Float(required=True)


TIMED = JobType("bench_timed", schema=Work)
