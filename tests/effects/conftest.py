"""The lease under which an effect is started."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection
from rowcall.queue import Lease
from tests.effects.attempts import lease_of


@pytest.fixture
def lease(connection: PgConnection) -> Lease:
    return lease_of(connection)
