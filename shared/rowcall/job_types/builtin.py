"""The built-in job type `noop`, to try Rowcall."""

from __future__ import annotations

from marshmallow import INCLUDE, Schema

from rowcall.job_types.declaration import JobType


class AnyPayload(Schema):
    """Accepts any payload."""

    class Meta:
        unknown = INCLUDE


NOOP = JobType("noop", schema=AnyPayload)
"""Does nothing and returns its payload; for first tries and the benchmark."""
