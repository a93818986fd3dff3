"""The small SaaS, for each test anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.example.saas import Saas, small_saas
from tests.support.gate import Gate, gate


@pytest.fixture
def saas(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> Iterator[Saas]:
    with small_saas(environment, fresh_url, tmp_path) as saas:
        yield saas


@pytest.fixture
def barred(saas: Saas) -> Iterator[Gate]:
    """The gate in the SaaS's database."""
    with gate(saas.url) as barred:
        yield barred
