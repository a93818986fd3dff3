"""The example as the app of these tests: its cleanup_nightly has a day in its payload, and a natural key."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def app_of_these_tests(example_app: None) -> None:
    """Make the example the app of all tests here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of this test's files."""
    return tmp_path
