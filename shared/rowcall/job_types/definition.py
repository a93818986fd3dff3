"""A definition that an app's code declares; definitions in files and requests have the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from rowcall.base.errors import DeclarationError
from rowcall.job_types.declaration import JobType


@dataclass(frozen=True)
class Definition:
    """A name, a job type, a schedule and the options of the runs.

    `rowcall migrate` and `rowcall definitions apply` check its fields when they apply it.
    """

    name: str
    job_type: JobType
    schedule: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    time_zone: str = "UTC"
    catch_up: str = "latest"
    max_lateness: str | float | timedelta | None = None
    overlap: str | None = None
    jitter: str | float | timedelta = 0
    queue: str | None = None
    priority: int = 0
    max_attempts: int | None = None
    ping_url: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DeclarationError(
                f"definition {self.name!r}: name is {self.name!r} and must be text, such as 'nightly'"
            )
        if not isinstance(self.job_type, JobType):
            raise DeclarationError(f"definition {self.name!r}: job_type is {self.job_type!r} and must be a JobType")

    @property
    def content(self) -> dict[str, Any]:
        """The fields, in the form of a file of definitions."""
        told = {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name != "name"}
        return {**told, "job_type": self.job_type.name}
