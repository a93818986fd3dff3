"""Lists of runs: what filters match, how much a page reads, and cursors."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import DatabaseUnavailable, FilterInvalid
from rowcall.job_types.builtin import NOOP
from rowcall.queue import Filter, count_runs, enqueue, list_runs
from rowcall.queue.views import cursors, lists
from rowcall.status import Status
from tests.support.rows import at, definition_of, run_in

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ids(connection: PgConnection, **wanted: Any) -> list[int]:
    return [run["id"] for run in list_runs(connection, Filter(**wanted)).runs]


def test_the_runs_that_were_inserted_last_come_first(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.QUEUED)["id"] for _ in range(4)]
    assert ids(connection) == runs[::-1]


def test_runs_of_one_moment_that_have_failed_are_in_the_order_of_ids(connection: PgConnection) -> None:
    runs = [run_in(connection, Status.DEAD, failed_at="now()", created_at=at(NOON))["id"] for _ in range(3)]
    assert ids(connection, status=(Status.DEAD,)) == runs[::-1]


# Each filter, a value that one run has, and the columns that give it to that run.
HAS: dict[str, tuple[object, dict[str, str]]] = {
    "status": ((Status.CANCELLED,), {"status": Status.CANCELLED}),
    "job_type": ("other", {"job_type": "'other'"}),
    "queue": ("mail", {"queue": "'mail'"}),
    "key": ("a-key", {"idempotency_key": "'a-key'"}),
    "error_type": ("ValueError", {"error_type": "'ValueError'", "failed_at": "now()"}),
    "created_by": ("me", {"created_by": "'me'"}),
    "created_after": (NOON, {"created_at": at(NOON)}),
    "created_before": (NOON - 9 * HOUR, {"created_at": at(NOON - 10 * HOUR)}),
    "run_after": (NOON, {"run_at": at(NOON)}),
    "run_before": (NOON - 9 * HOUR, {"run_at": at(NOON - 10 * HOUR)}),
    "finished_after": (NOON, {"status": Status.DEAD, "failed_at": "now()", "finished_at": at(NOON)}),
    "finished_before": (NOON, {"status": Status.DEAD, "failed_at": "now()", "finished_at": at(NOON - HOUR)}),
    "payload": ({"user": {"id": 7}}, {"payload": """'{"user": {"id": 7, "name": "Ada"}, "more": 1}'"""}),
}
OTHER = {"created_at": at(NOON - HOUR), "run_at": at(NOON - HOUR)}


@pytest.mark.parametrize(("name", "value", "columns"), [(name, *has) for name, has in HAS.items()], ids=HAS)
def test_each_filter_lets_through_what_has_it_and_nothing_else(
    connection: PgConnection, name: str, value: object, columns: dict[str, str]
) -> None:
    run_in(connection, Status.QUEUED, **OTHER)
    run = run_in(connection, **{"status": Status.QUEUED, **OTHER, **columns})  # type: ignore[arg-type]  # a status too
    run_in(connection, Status.QUEUED, **OTHER)
    assert ids(connection, **{name: value}) == [run["id"]]
    assert count_runs(connection, Filter(**{name: value})) == {"value": 1, "capped": False}  # type: ignore[arg-type]


def test_every_filter_is_tried() -> None:
    assert {*HAS, "definition"} == {field.name for field in dataclasses.fields(Filter)}


def test_a_definitions_runs_are_found_by_its_name_which_they_show_and_stay_when_it_is_removed(
    connection: PgConnection,
) -> None:
    nightly, other = (definition_of(connection, name) for name in ("nightly", "other"))
    runs = [run_in(connection, Status.QUEUED, definition_id=str(of))["id"] for of in (nightly, other, nightly)]
    fetch_all(connection, "UPDATE rowcall.job_definitions SET removed_at = now() WHERE name = 'nightly'")
    found = list_runs(connection, Filter(definition="nightly")).runs
    assert [(run["id"], run["definition"]) for run in found] == [(runs[2], "nightly"), (runs[0], "nightly")]
    assert ids(connection, definition="none") == []


def test_filters_together_let_through_what_has_all_of_it(connection: PgConnection) -> None:
    both = {"queue": "'mail'", "created_by": "'me'", "idempotency_key": "'k'", "definition_id": "NULL"}
    run = run_in(connection, Status.DEAD, failed_at="now()", **both)
    assert ids(connection, status=(Status.DEAD, Status.FAILED), queue="mail", created_by="me", key="k") == [run["id"]]
    for wrong in ({"queue": "other"}, {"status": (Status.FAILED,)}, {"definition": "nightly"}, {"error_type": "E"}):
        assert ids(connection, **{"queue": "mail", "key": "k", **wrong}) == []


def test_a_run_is_also_found_by_the_key_of_a_request_that_it_answered(connection: PgConnection) -> None:
    once = dataclasses.replace(NOOP, name="once", key=lambda payload: f"once:{payload['n']}")
    enqueue(connection, once, {"n": 2}, key="other")
    runs = [enqueue(connection, once, {"n": 1}, key=key).run_id for key in ("first", "second")]
    assert [ids(connection, key=key) for key in ("first", "second", "once:1", "third")] == [[runs[0]]] * 3 + [[]]
    assert ids(connection, key="second", queue="default") == [runs[1]]
    assert ids(connection, key="second", queue="mail") == []


def test_times_side_by_side_miss_nothing_and_share_nothing(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, created_at=at(NOON))
    assert ids(connection, created_after=NOON, created_before=NOON + HOUR) == [run["id"]]
    assert ids(connection, created_after=NOON - HOUR, created_before=NOON) == []


@pytest.mark.parametrize("cursor", ["", "x", "no cursor", "ü", "\0", "\ud800", "A" * 29, "A" * 30, "A" * 31, "=" * 30])
def test_what_is_no_cursor_is_refused_by_name(connection: PgConnection, cursor: str) -> None:
    with pytest.raises(FilterInvalid, match="cursor: "):
        list_runs(connection, Filter(), 1, cursor)


def test_a_cursor_with_anything_added_is_refused(connection: PgConnection) -> None:
    cursor = next_of_two(connection, Filter())
    for forged in (cursor + "=", cursor + "!", " " + cursor, cursor + "AAAA", cursor[:-1]):
        with pytest.raises(FilterInvalid, match="is not a cursor"):
            list_runs(connection, Filter(), 1, forged)


def test_a_cursor_of_a_list_with_other_filters_is_refused(connection: PgConnection) -> None:
    cursor = next_of_two(connection, Filter(job_type="noop"))
    for other in (Filter(), Filter(job_type="other"), Filter(job_type="noop", queue="default")):
        with pytest.raises(FilterInvalid, match="with other filters or in another order"):
            list_runs(connection, other, 1, cursor)


def test_a_cursor_of_another_list_is_told_from_what_is_no_cursor_whatever_its_position_is() -> None:
    written = {
        "numbers": cursors.written("numbers", 1, 2),
        "a name": cursors.written_text("a name", "default"),
        "a long name": cursors.written_text("a long name", "sixteen_letters_"),
    }
    for scope, cursor in written.items():
        for reads in (cursors.read, cursors.read_text):
            with pytest.raises(
                FilterInvalid, match="^cursor: belongs to another list, or to this one with other filters"
            ):
                reads(f"not {scope}", cursor)


def test_a_cursor_goes_on_with_the_same_filters_however_they_are_written(connection: PgConnection) -> None:
    zone = timezone(-5 * HOUR)
    one = Filter(status=(Status.DEAD, Status.QUEUED), run_after=NOON, payload={"a": 1, "b": 2})
    same = Filter(status=(Status.QUEUED, Status.DEAD), run_after=NOON.astimezone(zone), payload={"b": 2, "a": 1})
    cursor = next_of_two(connection, one)
    assert len(list_runs(connection, same, 1, cursor).runs) == 1


def test_a_cursor_at_the_end_of_time_is_refused(connection: PgConnection) -> None:
    forged = cursors.written(Filter().text, 2**63 - 1, 1)
    with pytest.raises(FilterInvalid, match="cursor: names a time that does not exist"):
        list_runs(connection, Filter(), 1, forged)


def next_of_two(connection: PgConnection, wanted: Filter) -> str:
    """Return the cursor between two runs that match."""
    for _ in range(2):
        run_in(connection, Status.QUEUED, payload="""'{"a": 1, "b": 2}'""")
    cursor = list_runs(connection, wanted, 1).next
    assert cursor is not None
    return cursor


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"key": "a\0b"}, "key: cannot be searched: it contains a null character"),
        ({"queue": "\ud800"}, "queue: cannot be searched: it contains half of a surrogate pair"),
        ({"payload": {"a": float("nan")}}, "payload: cannot be searched"),
        ({"payload": {"a\0": 1}}, "payload: cannot be searched: it contains a null character"),
        ({"run_after": datetime(2030, 1, 1)}, "run_after: must have an offset"),
        ({"created_before": datetime(1999, 12, 31, tzinfo=UTC)}, "created_before: must be a time in the years 2000 to"),
        ({"finished_after": datetime.max.replace(tzinfo=timezone(-HOUR))}, "finished_after: must be a time in"),
    ],
)
def test_a_filter_that_nothing_could_match_is_refused_by_name(wanted: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FilterInvalid, match=complaint):
        Filter(**wanted)


def test_every_offset_that_python_knows_can_be_asked_for(connection: PgConnection) -> None:
    run = run_in(connection, Status.QUEUED, created_at=at(NOON))
    for offset in (timedelta(hours=23, minutes=59), timedelta(microseconds=1), -timedelta(hours=23)):
        assert ids(connection, created_after=NOON.astimezone(timezone(offset))) == [run["id"]]


@pytest.mark.parametrize(
    "wanted", [{}, {"status": ()}, {"payload": {}}, {"job_type": None}], ids=["none", "status", "payload", "type"]
)
def test_a_filter_that_everything_matches_says_so(wanted: dict[str, Any]) -> None:
    assert Filter(**wanted).leaves_all_open


@pytest.mark.parametrize("wanted", [{"job_type": "noop"}, {"status": tuple(Status)}, {"run_after": NOON}])
def test_a_filter_that_asks_for_anything_does_not(wanted: dict[str, Any]) -> None:
    assert not Filter(**wanted).leaves_all_open


def test_a_walk_that_ends_at_its_bound_goes_on_behind_it_though_the_page_is_empty(connection: PgConnection) -> None:
    oldest = run_in(connection, Status.DEAD, failed_at="now()", created_at=at(NOON - 10 * HOUR), queue="'mail'")
    for hours in range(6):
        run_in(connection, Status.QUEUED, created_at=at(NOON - hours * HOUR))
    seen, cursor = [], None
    for _ in range(3):
        page = list_runs(connection, Filter(queue="mail"), 1, cursor, most=3)
        seen.append([run["id"] for run in page.runs])
        cursor = page.next
    assert (seen, cursor) == ([[], [], [oldest["id"]]], None)


def test_a_full_page_at_the_very_end_has_no_next(connection: PgConnection) -> None:
    for _ in range(4):
        run_in(connection, Status.QUEUED)
    page = list_runs(connection, Filter(), 2)
    assert page.next is not None
    assert list_runs(connection, Filter(), 2, page.next).next is None


def test_a_count_stops_at_the_bound_and_says_so(connection: PgConnection) -> None:
    for hours in range(5):
        run_in(connection, Status.QUEUED, created_at=at(NOON - hours * HOUR), queue="'mail'" if hours % 2 else "'web'")
    assert count_runs(connection, Filter(queue="mail")) == {"value": 2, "capped": False}
    assert count_runs(connection, Filter(queue="mail"), most=3) == {"value": 1, "capped": True}
    assert count_runs(connection, Filter(queue="mail", created_before=NOON - HOUR)) == {"value": 1, "capped": False}


def test_a_search_that_waits_for_a_lock_says_so_and_not_that_it_is_too_slow(
    module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SECONDS", 0.1)
    with database.transaction(module_url) as holder, database.transaction(module_url) as connection:
        fetch_all(holder, "LOCK TABLE rowcall.job_runs IN ACCESS EXCLUSIVE MODE")
        for search in (list_runs, count_runs):
            with pytest.raises(DatabaseUnavailable, match="another transaction holds a needed lock"):
                search(connection, Filter())
            connection.rollback()
