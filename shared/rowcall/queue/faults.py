"""Finds everything that is wrong with a request for a run, so that one response can report it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowcall.base.errors import DeclarationError, JobTypeUnknown, RunInvalid
from rowcall.job_types import JobType, catalogue
from rowcall.queue.enqueue import check_options, stored_text

# The options that a caller leaves out.
DEFAULTS: dict[str, Any] = {"run_at": None, "queue": None, "priority": 0, "max_attempts": None}


def faults_of(request: Mapping[str, Any]) -> dict[str, object]:
    """Return what is wrong with these fields of a request; fields that it lacks are not examined."""
    wrong: dict[str, object] = {}
    declared: JobType | None = None
    try:
        declared = catalogue()[request["job_type"]] if "job_type" in request else None
    except JobTypeUnknown as error:
        wrong["job_type"] = error.fault
    try:
        check_options(declared, {name: request.get(name, default) for name, default in DEFAULTS.items()})
    except RunInvalid as error:
        wrong.update(error.fields)
    if declared is not None and "payload" in request:
        try:
            stored_text(declared.checked(request["payload"]))
        except RunInvalid as error:
            wrong.update(error.fields)
        except DeclarationError:
            # The type's own code failed: that is reported if the request is otherwise valid.
            pass
    return wrong
