"""A pytest plugin for mutants: check that the copy's tests run, and that they test the copy."""

from __future__ import annotations

from pathlib import Path

import pytest

import rowcall
import rowcall_api
import rowcall_example
import rowcall_migrations
import rowcall_worker

PACKAGES = (rowcall, rowcall_api, rowcall_worker, rowcall_migrations, rowcall_example)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run if the tests or Rowcall are imported from elsewhere."""
    for module in (*(package.__file__ for package in PACKAGES), __file__):
        if module is None or not Path(module).is_relative_to(config.rootpath):
            raise pytest.UsageError(f"{module} is not in the copy {config.rootpath}: no mutant would be tested")
