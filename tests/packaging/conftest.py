"""The wheel that these tests install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.installed import build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this tree."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))
