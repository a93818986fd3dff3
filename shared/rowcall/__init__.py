"""Rowcall's public face: what an app imports.  Each name is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowcall.base.errors import Permanent, Retry, Snooze
    from rowcall.job_types import Definition, JobType, exponential, fixed, quadratic
    from rowcall.queue import enqueue, enqueue_many

__all__ = [
    "Definition",
    "JobType",
    "Permanent",
    "Retry",
    "Snooze",
    "enqueue",
    "enqueue_many",
    "exponential",
    "fixed",
    "quadratic",
]

PLACES = {
    "Definition": "rowcall.job_types",
    "JobType": "rowcall.job_types",
    "Permanent": "rowcall.base.errors",
    "Retry": "rowcall.base.errors",
    "Snooze": "rowcall.base.errors",
    "enqueue": "rowcall.queue",
    "enqueue_many": "rowcall.queue",
    "exponential": "rowcall.job_types",
    "fixed": "rowcall.job_types",
    "quadratic": "rowcall.job_types",
}


def __getattr__(name: str) -> Any:
    """Load a name from its module."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(PLACES[name]), name)
