"""A connection to the shop's database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from tests.support.shop import Shop


@pytest.fixture
def connection(shop: Shop) -> Iterator[PgConnection]:
    """Yield a connection in autocommit, so that each query sees the latest state."""
    connection = database.connect(shop.url)
    connection.autocommit = True
    yield connection
    connection.close()
