"""A pytest plugin for testing an app's own handlers: see docs/testing.md.

The tests' conftest.py names it, `pytest_plugins = ["rowcall_worker.testing"]`.  It is not an entry point, which would
load Rowcall into every run of pytest in an environment that has it; and only this package needs pytest.
"""

from rowcall.base.errors import (
    Blocked,
    Declined,
    KeyReused,
    OutcomeUnknown,
    Refused,
    Unavailable,
    Unusable,
    WrongCharge,
)
from rowcall.cli import extras

try:
    from rowcall_worker.testing.kit import Performed, Rowcall
    from rowcall_worker.testing.plugin import (
        pytest_addoption,
        pytest_runtest_makereport,
        rowcall,
        rowcall_app,
        rowcall_databases,
        rowcall_schema,
    )
except ModuleNotFoundError as error:
    if not extras.is_missing(error):
        raise
    # pytest shows it without the frames that lead to the missing module.
    raise ImportError("rowcall_worker.testing needs the worker extra: pip install 'rowcall[worker]'") from None

__all__ = [
    "Blocked",
    "Declined",
    "KeyReused",
    "OutcomeUnknown",
    "Performed",
    "Refused",
    "Rowcall",
    "Unavailable",
    "Unusable",
    "WrongCharge",
    "pytest_addoption",
    "pytest_runtest_makereport",
    "rowcall",
    "rowcall_app",
    "rowcall_databases",
    "rowcall_schema",
]
