"""Sizes are those of values as PostgreSQL writes them: 1e308 with 309 digits, however short it was sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.base.database import PgConnection, fetch_value
from rowcall.base.errors import DefinitionInvalid, RunInvalid
from rowcall.base.jsonb import KEPT_BYTES, size_of, stored, stored_small
from rowcall.definitions import checked
from rowcall.job_types import catalogue
from rowcall.queue import enqueue, enqueue_many
from rowcall.queue.enqueue import PAYLOAD_BYTES

# 6 KB when sent, and 250 KB in the table.
GROWS = {"numbers": [1e308] * 800}

# PostgreSQL writes -0.0 without its sign.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number or 0.0)
NUMBERS = FLOATS | st.integers(-(10**40), 10**40)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.just('a-1e+30 e-mail \\" 1e-7')
VALUES = st.recursive(
    NUMBERS | TEXTS | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(VALUES)
@example([1e308, -1e308, 5e-324, -5e-324, 1e16, 1.2345678901234567e-05, 1.2345678901234567e16, 100.0, 0.0001])
@example({'"1e+30\\': '\\"1e+30', "1e-300": ["1e+30", 1e30]})
def test_the_size_of_a_value_is_the_size_that_postgresql_writes(connection: PgConnection, value: Any) -> None:
    text = stored(value)
    written = fetch_value(connection, "SELECT octet_length(%(text)s::jsonb::text)", {"text": text})
    assert size_of(text) == written


def test_a_payload_is_measured_as_it_is_stored(connection: PgConnection) -> None:
    assert len(stored(GROWS)) < PAYLOAD_BYTES
    for ask in (lambda: enqueue(connection, "noop", GROWS), lambda: enqueue_many(connection, "noop", [{}, GROWS])):
        with pytest.raises(RunInvalid, match=r"is \d{6} bytes as PostgreSQL writes it; the limit is 65536"):
            ask()
    assert fetch_value(connection, "SELECT count(*) FROM rowcall.job_runs") == 0


def test_a_payload_may_be_stored_with_as_many_bytes_as_the_limit_and_no_more(connection: PgConnection) -> None:
    room = PAYLOAD_BYTES - size_of(stored({"a": [1e308], "b": ""}))
    run = enqueue(connection, "noop", {"a": [1e308], "b": "x" * room})
    size = "SELECT octet_length(payload::text) FROM rowcall.job_runs WHERE id = %(id)s"
    assert fetch_value(connection, size, {"id": run.run_id}) == PAYLOAD_BYTES
    with pytest.raises(RunInvalid, match="payload: is 65537 bytes"):
        enqueue(connection, "noop", {"a": [1e308], "b": "x" * (room + 1)})


def test_what_a_handler_returns_or_saves_is_measured_as_it_is_stored() -> None:
    assert len(stored(GROWS)) < KEPT_BYTES
    with pytest.raises(ValueError, match=r"it is \d{6} bytes as PostgreSQL writes it; the limit is 65536"):
        stored_small(GROWS)


def test_a_definitions_payload_is_measured_as_it_is_stored() -> None:
    with pytest.raises(DefinitionInvalid, match=r"payload: is \d{6} bytes as PostgreSQL writes it"):
        checked("nightly", {"job_type": "noop", "payload": GROWS}, catalogue())


def test_a_definitions_payload_is_measured_before_its_times_are_put_in_too() -> None:
    braces = {"text": "{{" * (PAYLOAD_BYTES - 100)}
    with pytest.raises(DefinitionInvalid, match=r"payload: is \d{6} bytes as PostgreSQL writes it"):
        checked("nightly", {"job_type": "noop", "payload": braces}, catalogue())
