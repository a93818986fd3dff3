"""Two concurrent applies: one waits for the other, and neither undoes the other's changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.base.errors import DefinitionChanged
from rowcall.definitions import (
    Precondition,
    apply_code,
    apply_file,
    list_definitions,
    put,
    remove,
)
from rowcall.definitions.check import checked
from rowcall.job_types import Definition, builtin
from tests.definitions.applying import NIGHTLY, YEARLY_TOML, kinds, written
from tests.definitions.making import (
    CATALOGUE,
    OPERATOR,
    YEARLY,
    code,
    row_of,
)
from tests.support.locks import wait_for_a_waiting_session

# At the same time


class Aside:
    """An act on another connection, in parallel with the test."""

    def __init__(self, url: str, act: Callable[[PgConnection], Any]) -> None:
        self._url = url
        self._act = act
        self._thread = threading.Thread(target=self._do)
        self._answer: list[Any] = []
        self._thread.start()

    def _do(self) -> None:
        try:
            with database.transaction(self._url) as connection:
                self._answer.append(self._act(connection))
        except Exception as error:
            self._answer.append(error)

    def answer(self) -> Any:
        """Return its result or its error."""
        self._thread.join()
        return self._answer[0]


@contextmanager
def while_in(url: str, *acts: Callable[[PgConnection], Any], beside: Callable[[PgConnection], Any]) -> Iterator[Aside]:
    """Do these acts in one transaction; all but the first come after `beside`, in another transaction, waits for it."""
    with database.transaction(url) as connection:
        acts[0](connection)
        aside = Aside(url, beside)
        wait_for_a_waiting_session(url)
        for act in acts[1:]:
            act(connection)
        connection.commit()
        yield aside


def test_of_two_that_apply_the_same_file_one_does_it_and_the_other_finds_it_done(
    fresh_url: str, tmp_path: Path
) -> None:
    file = written(tmp_path, NIGHTLY + YEARLY_TOML)

    def applying(connection: PgConnection) -> dict[str, str]:
        return kinds(apply_file(connection, file, CATALOGUE, OPERATOR, prune=True))

    with while_in(fresh_url, applying, beside=applying) as second:
        assert second.answer() == {"nightly": "unchanged", "yearly": "unchanged"}
    with database.transaction(fresh_url) as connection:
        assert [row["revision"] for row in list_definitions(connection)] == [1, 1]


def test_two_that_prune_each_others_definitions_end_one_after_the_other(fresh_url: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ours, theirs = written(tmp_path, NIGHTLY), written(tmp_path / "other", YEARLY_TOML)
    with database.transaction(fresh_url) as connection:
        apply_file(connection, written(tmp_path, NIGHTLY + YEARLY_TOML), CATALOGUE, OPERATOR)
    written(tmp_path, NIGHTLY)
    with while_in(
        fresh_url,
        lambda connection: apply_file(connection, ours, CATALOGUE, OPERATOR, prune=True),
        beside=lambda connection: kinds(apply_file(connection, theirs, CATALOGUE, OPERATOR, prune=True)),
    ) as second:
        assert second.answer() == {"nightly": "removed", "yearly": "created"}


def test_two_that_make_the_same_definitions_in_another_order_do_not_lock_each_other_out(fresh_url: str) -> None:
    def applying(*names: str) -> Callable[[PgConnection], dict[str, str]]:
        declared = code(*(Definition(name, builtin.NOOP) for name in names))
        return lambda connection: kinds(apply_code(connection, declared, OPERATOR))

    with while_in(fresh_url, applying("a"), applying("b"), beside=applying("b", "a")) as second:
        assert second.answer() == {"a": "unchanged", "b": "unchanged"}


def test_the_code_leaves_alone_what_is_being_taken_over_at_that_moment(fresh_url: str, tmp_path: Path) -> None:
    declared = code(Definition("yearly", builtin.NOOP, "@yearly"))
    content = checked("yearly", {**YEARLY, "priority": 7}, CATALOGUE)
    with while_in(
        fresh_url,
        lambda connection: put(connection, "yearly", content, CATALOGUE, "api", Operator("api:ops")),
        beside=lambda connection: kinds(apply_code(connection, declared, OPERATOR, prune=True)),
    ) as second:
        assert second.answer() == {"yearly": "foreign"}
    with database.transaction(fresh_url) as connection:
        assert (row_of(connection)["managed_by"], row_of(connection)["priority"]) == ("api", 7)


def test_what_somebody_removes_at_that_moment_is_no_difference(fresh_url: str, tmp_path: Path) -> None:
    file = written(tmp_path, YEARLY_TOML)
    with database.transaction(fresh_url) as connection:
        apply_file(connection, file, CATALOGUE, OPERATOR)
    written(tmp_path, "[definitions]")
    with while_in(
        fresh_url,
        lambda connection: remove(connection, "yearly", OPERATOR),
        beside=lambda connection: apply_file(connection, file, CATALOGUE, OPERATOR, prune=True),
    ) as second:
        assert second.answer() == []


def test_of_two_that_make_the_same_definition_the_second_changes_the_firsts(fresh_url: str) -> None:
    def putting(priority: int) -> Callable[[PgConnection], tuple[str, int]]:
        content = checked("yearly", {**YEARLY, "priority": priority}, CATALOGUE)

        def act(connection: PgConnection) -> tuple[str, int]:
            done = put(connection, "yearly", content, CATALOGUE, "api", OPERATOR)
            return str(done.change), done.row["revision"]

        return act

    with while_in(fresh_url, putting(1), beside=putting(2)) as second:
        assert second.answer() == ("changed", 2)


SEEN = Precondition(match={"1"})
NEW = Precondition(none_match={"1", "2"})


@pytest.mark.parametrize(("condition", "makes"), [(SEEN, False), (NEW, True)], ids=["as it was seen", "only if new"])
def test_of_two_that_change_it_on_one_condition_at_once_one_does_and_the_other_is_told(
    fresh_url: str, condition: Precondition, makes: bool
) -> None:
    if not makes:
        with database.transaction(fresh_url) as connection:
            put(connection, "yearly", checked("yearly", YEARLY, CATALOGUE), CATALOGUE, "api", OPERATOR)

    def changed(priority: int) -> Callable[[PgConnection], Any]:
        content = checked("yearly", {**YEARLY, "priority": priority}, CATALOGUE)
        return lambda connection: put(connection, "yearly", content, CATALOGUE, "api", OPERATOR, condition)

    with while_in(fresh_url, changed(5), beside=changed(6)) as second:
        assert isinstance(second.answer(), DefinitionChanged)
    with database.transaction(fresh_url) as connection:
        assert row_of(connection)["priority"] == 5
