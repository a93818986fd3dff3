"""The shop's database as a test looks into it beside the shop's workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection
from tests.support.shop import Shop


@pytest.fixture
def connection(shop: Shop) -> Iterator[PgConnection]:
    """A connection whose statements are transactions of their own, so that each look is a new one."""
    connection = database.connect(shop.url)
    connection.autocommit = True
    yield connection
    connection.close()
