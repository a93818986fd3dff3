"""The handlers of built-in job types, one file each; `load_handlers` also loads those of the app."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from rowcall.base.errors import DeclarationError
from rowcall.effects import Effect
from rowcall.job_types.catalogue import Catalogue, app_module
from rowcall.job_types.handlers import Handler, declared_handlers, place_of
from rowcall_worker.attempt.context import Run

# An app's handlers use Effect and Run.
__all__ = ["Effect", "Handler", "Run", "load_handlers"]


def load_handlers(catalogue: Catalogue, app: str | None) -> Mapping[str, Handler]:
    """Return the handler of each job type; raise if a type has no handler or a handler has no type."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    if app:
        app_module(app, "handlers")
    declared = declared_handlers()
    without_type = sorted(set(declared) - set(catalogue))
    if without_type:
        name = without_type[0]
        raise DeclarationError(
            f"job type {name!r} has the handler {place_of(declared[name])}, but no job_types module declares it;"
            " declare the JobType there, and import it in the handler's module"
        )
    without_handler = sorted(set(catalogue) - set(declared))
    if without_handler:
        raise DeclarationError(
            f"job type {without_handler[0]!r} has no handler: write one in handlers, decorated with @TYPE.handler"
        )
    return {name: declared[name] for name in catalogue}
