"""The names that an app imports: to declare job types and definitions, to enqueue runs, and to end a handler early.

Each name is loaded when it is first used, so that `import rowcall` is fast in a web process, and because the keeper of
the local PostgreSQL can import only the standard library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowcall.base.errors import (
        Declined,
        NoResult,
        OutcomeUnknown,
        Permanent,
        Refused,
        ResultTimeout,
        Retry,
        Snooze,
        Unavailable,
    )
    from rowcall.effects import EffectKind
    from rowcall.job_types import Definition, celery, exponential, fixed, quadratic
    from rowcall.queue.enqueue import enqueue, enqueue_many
    from rowcall.queue.job_type import JobType
    from rowcall_worker.handlers import Run  # the one exception to the layers: apps annotate handlers with it

# The build and the workers read the version here, because reading the installed metadata takes longer than a claim.
__version__ = "0.3.0.dev0"

__all__ = [
    "Declined",
    "Definition",
    "EffectKind",
    "JobType",
    "NoResult",
    "OutcomeUnknown",
    "Permanent",
    "Refused",
    "ResultTimeout",
    "Retry",
    "Run",
    "Snooze",
    "Unavailable",
    "celery",
    "enqueue",
    "enqueue_many",
    "exponential",
    "fixed",
    "quadratic",
]

_MODULES = {
    "Declined": "rowcall.base.errors",
    "Definition": "rowcall.job_types",
    "EffectKind": "rowcall.effects",
    "JobType": "rowcall.queue.job_type",
    "NoResult": "rowcall.base.errors",
    "OutcomeUnknown": "rowcall.base.errors",
    "Permanent": "rowcall.base.errors",
    "Refused": "rowcall.base.errors",
    "ResultTimeout": "rowcall.base.errors",
    "Retry": "rowcall.base.errors",
    "Run": "rowcall_worker.handlers",
    "Snooze": "rowcall.base.errors",
    "Unavailable": "rowcall.base.errors",
    "celery": "rowcall.job_types",
    "enqueue": "rowcall.queue.enqueue",
    "enqueue_many": "rowcall.queue.enqueue",
    "exponential": "rowcall.job_types",
    "fixed": "rowcall.job_types",
    "quadratic": "rowcall.job_types",
}

if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import the module of this name at its first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    """Return all names, including public ones that are not loaded yet."""
    return sorted({*globals(), *__all__})
