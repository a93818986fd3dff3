"""What each job type does: one file per built-in job, and the handlers of the team's own package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from rowcall.base.errors import DeclarationError
from rowcall.effects import Effect
from rowcall.job_types.catalogue import Catalogue, app_module
from rowcall_worker.attempt.context import Run

# The first three are what an app's handlers are written with.
__all__ = ["Effect", "Handler", "Run", "handles", "load_handlers"]

Handler = Callable[[Run], Any]

_declared: dict[str, Handler] = {}


def handles(job_type: str) -> Callable[[Handler], Handler]:
    """Declare the function below as what runs of this type do; what it returns becomes the run's result."""

    def declare(handler: Handler) -> Handler:
        if _declared.setdefault(job_type, handler) is not handler:
            raise DeclarationError(
                f"job type {job_type!r} has two handlers: {_place(_declared[job_type])} and {_place(handler)}; keep one"
            )
        return handler

    return declare


def load_handlers(catalogue: Catalogue, app: str | None) -> Mapping[str, Handler]:
    """All handlers, one for each type of the catalogue, or an error that names the type in question."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    if app:
        app_module(app, "handlers")
    without_type = sorted(set(_declared) - set(catalogue))
    if without_type:
        name = without_type[0]
        raise DeclarationError(
            f"job type {name!r}: {_place(_declared[name])} handles it, and no job_types module declares it;"
            " declare a JobType of that name, or mend the name in @handles"
        )
    without_handler = sorted(set(catalogue) - set(_declared))
    if without_handler:
        raise DeclarationError(
            f"job type {without_handler[0]!r} has no handler: write one under @handles({without_handler[0]!r})"
        )
    return {name: _declared[name] for name in catalogue}


def _place(handler: Handler) -> str:
    return f"{handler.__module__}.{handler.__qualname__}"
