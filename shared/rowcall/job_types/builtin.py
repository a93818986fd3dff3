"""The job type that is there from the start, besides housekeeping's: something to try with."""

from __future__ import annotations

from marshmallow import INCLUDE, Schema

from rowcall.job_types.declaration import JobType


class AnyPayload(Schema):
    """Takes whatever is sent."""

    class Meta:
        unknown = INCLUDE

    def dump(self, obj: object, *, many: bool | None = None) -> object:
        """What was sent, as it was: undeclared fields have no other form."""
        return obj


NOOP = JobType("noop", schema=AnyPayload)
"""Does nothing and returns its payload: for a first try and for the benchmark."""
