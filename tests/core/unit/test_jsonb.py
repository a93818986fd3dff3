"""JSON for the database: what PostgreSQL would refuse is refused earlier, with what to do instead."""

from __future__ import annotations

import pytest

from rowcall.base.jsonb import KEPT_BYTES, stored_small


def test_what_a_handler_returns_may_be_as_large_as_the_limit_and_no_larger() -> None:
    assert len(stored_small("x" * (KEPT_BYTES - 2))) == KEPT_BYTES
    with pytest.raises(ValueError, match="store it in a table or file of your own and return its id"):
        stored_small("é" * (KEPT_BYTES // 2))
