"""The types of recent errors, which are suggested as filters."""

from __future__ import annotations

from rowcall.base.database import Connection
from rowcall.queue.failures.recent import recent_error_types
from rowcall.status import Event
from tests.support.failures import failed


def test_the_types_of_the_newest_failures_are_listed_by_name_once_each(connection: Connection) -> None:
    failed(connection, error_type="ValueError", age="3 minutes")
    failed(connection, error_type="KeyError", age="2 minutes")
    failed(connection, error_type="KeyError", age="1 minute", outcome=Event.GIVE_UP)
    failed(connection, error_type=None)
    failed(connection, error_type="Snoozed", outcome=Event.SNOOZE)
    assert recent_error_types(connection) == ["KeyError", "ValueError"]
    assert recent_error_types(connection, most=2) == ["KeyError"], "among the newest"
