"""What a team's own code imports: job types and definitions to declare, runs to enqueue, how a handler ends early.

Each name is loaded when it is first used, because `import rowcall` must cost a web process little, and because the
keeper of the local PostgreSQL runs where only the standard library can be imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowcall.base.errors import Declined, OutcomeUnknown, Permanent, Refused, Retry, Snooze, Unavailable
    from rowcall.effects import EffectKind
    from rowcall.job_types import Definition, exponential, fixed, quadratic
    from rowcall.queue.enqueue import enqueue, enqueue_many
    from rowcall.queue.job_type import JobType
    from rowcall_worker.handlers import Run  # for annotations in handlers, so only a worker loads it

# The build reads it here, and so does a worker: to ask the installed metadata would take longer than a claim.
__version__ = "0.2.0.dev0"

__all__ = [
    "Declined",
    "Definition",
    "EffectKind",
    "JobType",
    "OutcomeUnknown",
    "Permanent",
    "Refused",
    "Retry",
    "Run",
    "Snooze",
    "Unavailable",
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
    "OutcomeUnknown": "rowcall.base.errors",
    "Permanent": "rowcall.base.errors",
    "Refused": "rowcall.base.errors",
    "Retry": "rowcall.base.errors",
    "Run": "rowcall_worker.handlers",
    "Snooze": "rowcall.base.errors",
    "Unavailable": "rowcall.base.errors",
    "enqueue": "rowcall.queue.enqueue",
    "enqueue_many": "rowcall.queue.enqueue",
    "exponential": "rowcall.job_types",
    "fixed": "rowcall.job_types",
    "quadratic": "rowcall.job_types",
}

if not TYPE_CHECKING:  # a type checker would take any name for one that this function returns

    def __getattr__(name: str) -> Any:
        """Load the name's module, once."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    """The public names too, though they may not be loaded yet."""
    return sorted({*globals(), *__all__})
