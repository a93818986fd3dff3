"""The example as the app of these tests: its cleanup_nightly has what they need, a day in its payload and a key."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def app_of_these_tests(example_app: None) -> None:
    """All tests here have the example as their app."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this test's files are."""
    return tmp_path
