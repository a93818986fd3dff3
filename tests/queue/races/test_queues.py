"""Operators who change a queue while another one removes its settings."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import QueueBusy
from rowcall.queue import limit_queue, pause_queue, queues, remove_queue, resume_queue

OPERATOR = Operator("cli:ada")


def limit(connection: PgConnection, name: str, operator: Operator) -> Any:
    return limit_queue(connection, name, 3, operator)


def removed_meanwhile(monkeypatch: pytest.MonkeyPatch, url: str, times: int) -> None:
    """Remove a queue's settings just after a change has found them or made them, so many times."""
    make, left = queues.make_queues, [times]

    def made_and_removed(connection: PgConnection, names: list[str]) -> None:
        if left[0]:
            left[0] -= 1
            with database.transaction(url) as other:
                make(other, names)
            make(connection, names)
            with database.transaction(url) as other:
                remove_queue(other, names[0], OPERATOR)
        else:
            make(connection, names)

    monkeypatch.setattr(queues, "make_queues", made_and_removed)


@pytest.mark.parametrize("change", [pause_queue, resume_queue, limit])
def test_a_queue_whose_settings_another_operator_removes_gets_new_ones(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    removed_meanwhile(monkeypatch, fresh_url, 1)
    with database.transaction(fresh_url) as connection:
        assert change(connection, "racy", OPERATOR)["name"] == "racy"


def test_a_change_that_always_finds_them_removed_says_so(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    removed_meanwhile(monkeypatch, fresh_url, 100)
    removed = "another operator keeps removing the settings of queue 'racy'"
    with pytest.raises(QueueBusy, match=removed), database.transaction(fresh_url) as connection:
        pause_queue(connection, "racy", OPERATOR)
