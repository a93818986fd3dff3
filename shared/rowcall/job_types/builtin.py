"""The built-in job type `noop`, to try Rowcall."""

from __future__ import annotations

from marshmallow import INCLUDE, Schema

from rowcall.job_types.declaration import JobType


class AnyPayload(Schema):
    """Accepts any payload."""

    class Meta:
        unknown = INCLUDE

    def dump(self, obj: object, *, many: bool | None = None) -> object:
        """Return the payload unchanged; marshmallow would drop undeclared fields."""
        return obj


NOOP = JobType("noop", schema=AnyPayload)
"""Does nothing and returns its payload; for first tries and the benchmark."""
