"""The handlers of job types, registered when the modules that declare them are imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from rowcall.base.errors import DeclarationError

# Called with a `Run`, which is a class of the worker.
Handler = Callable[[Any], object]
Declared = TypeVar("Declared", bound=Handler)

_declared: dict[str, Handler] = {}


def declare_handler(job_type: str, handler: Handler) -> None:
    """Register the handler of a job type; refuse a second one."""
    if not callable(handler):
        raise DeclarationError(
            f"job type {job_type!r}: its handler is {handler!r} and must be a function that takes the run"
        )
    if _declared.setdefault(job_type, handler) is not handler:
        raise DeclarationError(
            f"job type {job_type!r} has two handlers: {place_of(_declared[job_type])} and {place_of(handler)}; keep one"
        )


def declared_handlers() -> Mapping[str, Handler]:
    """Return the handlers by the names of their job types."""
    return MappingProxyType(_declared)


def place_of(handler: Handler) -> str:
    """Return the module and name of a handler."""
    return f"{handler.__module__}.{getattr(handler, '__qualname__', handler)}"
