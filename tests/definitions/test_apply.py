"""Apply a file or the code: all of it or nothing, and definitions that have not changed are not touched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowcall.base.database import PgConnection, fetch_all, fetch_value
from rowcall.base.errors import DefinitionFileInvalid
from rowcall.definitions import (
    Difference,
    apply_code,
    apply_file,
    get_definition,
    lines,
    list_definitions,
    pause,
    remove,
)
from rowcall.job_types import Definition, builtin
from rowcall_example.job_types import CLEANUP_NIGHTLY
from tests.definitions.applying import NIGHTLY, YEARLY_TOML, kinds, written
from tests.definitions.making import (
    CATALOGUE,
    OPERATOR,
    audited,
    code,
    decided,
    is_later_than_now,
    kept,
    last_audit,
    overdue,
    row_of,
)


@pytest.fixture
def apply(connection: PgConnection, tmp_path: Path) -> Callable[..., dict[str, Difference]]:
    """Return a function that applies a file with this text, and returns the differences by name."""

    def applied(text: str, prune: bool = False) -> dict[str, Difference]:
        return {one.name: one for one in apply_file(connection, written(tmp_path, text), CATALOGUE, OPERATOR, prune)}

    return applied


Apply = Callable[..., dict[str, Difference]]


def test_what_there_was_not_is_created_and_due(connection: PgConnection, apply: Apply) -> None:
    done = apply(f'{NIGHTLY}\n[definitions.hand]\njob_type = "noop"\n')
    assert kinds(done) == {"hand": "created", "nightly": "created"}
    nightly = get_definition(connection, "nightly")
    assert (nightly["revision"], nightly["managed_by"], nightly["payload"]) == (1, "file", {"day": "{date-1}"})
    assert is_later_than_now(connection, nightly["next_run_at"])
    assert get_definition(connection, "hand")["next_run_at"] is None
    assert lines(list(done.values())) == [
        "+ hand: new, noop, no schedule",
        f"+ nightly: new, cleanup_nightly, due next {nightly['next_run_at']:%Y-%m-%d} 03:17+00:00",
    ]
    assert audited(connection) == [("create", "nightly"), ("create", "hand")]


def test_what_is_there_and_different_is_changed_and_the_difference_told(connection: PgConnection, apply: Apply) -> None:
    apply(NIGHTLY)
    done = apply(NIGHTLY.replace("17 3", "20 3") + 'max_lateness = "6h"\npriority = 5\n')
    assert kinds(done) == {"nightly": "changed"}
    assert done["nightly"].changes == {
        "schedule": ("17 3 * * *", "20 3 * * *"),
        "max_lateness": (None, 21600.0),
        "priority": (0, 5),
    }
    assert lines(list(done.values())) == [
        '~ nightly: schedule "17 3 * * *" -> "20 3 * * *", max_lateness - -> "6 h", priority 0 -> 5'
    ]
    assert get_definition(connection, "nightly")["revision"] == 2
    audit = last_audit(connection)
    assert (audit["who"], audit["action"], audit["request_id"]) == ("test", "change", "request-1")
    assert (audit["before"]["schedule"], audit["after"]["schedule"]) == ("17 3 * * *", "20 3 * * *")
    assert (audit["after"]["name"], audit["after"]["revision"]) == ("nightly", 2)


def test_the_same_file_again_touches_nothing(connection: PgConnection, apply: Apply) -> None:
    apply(NIGHTLY + YEARLY_TOML)
    overdue(connection)
    fetch_all(connection, "UPDATE rowcall.job_definitions SET updated_at = now() - interval '1 day'")
    before = [row_of(connection, name) for name in ("nightly", "yearly")]
    done = apply(NIGHTLY + YEARLY_TOML)
    assert kinds(done) == {"nightly": "unchanged", "yearly": "unchanged"}
    assert lines(list(done.values())) == ["definitions: 2 unchanged"]
    assert [row_of(connection, name) for name in ("nightly", "yearly")] == before
    assert decided(connection) == []
    assert len(audited(connection)) == 2


@pytest.mark.parametrize(
    "value",
    [("a", ("b",)), 1e300, -0.0, 100.0, 1e22, True, None, "é \\u0041 😀", {"b": 1, "a": {}}, 2**70, "{{brace}}"],
)
def test_a_payload_that_was_kept_is_found_unchanged(connection: PgConnection, value: Any) -> None:
    declared = code(Definition("odd", builtin.NOOP, payload={"of": [value]}))
    assert kinds(apply_code(connection, declared, OPERATOR)) == {"odd": "created"}
    assert kinds(apply_code(connection, declared, OPERATOR)) == {"odd": "unchanged"}


def test_true_is_not_1(connection: PgConnection) -> None:
    for value, kind in ((1, "created"), (True, "changed"), (1.0, "changed"), (1, "unchanged")):
        declared = code(Definition("odd", builtin.NOOP, payload={"of": [value]}))
        assert kinds(apply_code(connection, declared, OPERATOR)) == {"odd": kind}


def test_what_stands_in_the_file_no_more_is_told_and_removed_only_when_that_is_asked(
    connection: PgConnection, apply: Apply
) -> None:
    apply(NIGHTLY + YEARLY_TOML)
    left = apply(NIGHTLY)
    assert kinds(left) == {"nightly": "unchanged", "yearly": "extra"}
    assert lines(list(left.values())) == [
        "? yearly: no longer in the file; `rowcall definitions apply FILE --prune` removes it",
        "definitions: 1 unchanged",
    ]
    assert get_definition(connection, "yearly")["next_run_at"] is not None
    gone = apply(NIGHTLY, prune=True)
    assert lines(list(gone.values())) == ["- yearly: removed", "definitions: 1 unchanged"]
    assert [row["name"] for row in list_definitions(connection)] == ["nightly"]
    assert audited(connection)[-1] == ("remove", "yearly")
    assert kinds(apply(NIGHTLY)) == {"nightly": "unchanged"}


def test_a_prune_takes_only_what_its_own_kind_of_source_has_brought(connection: PgConnection, apply: Apply) -> None:
    declared = code(Definition("by-code", builtin.NOOP))
    apply_code(connection, declared, OPERATOR)
    kept(connection, "by-api")
    apply(YEARLY_TOML)
    assert kinds(apply(NIGHTLY, prune=True)) == {"nightly": "created", "yearly": "removed"}
    assert kinds(apply_code(connection, code(), OPERATOR, prune=True)) == {"by-code": "removed"}
    assert [row["name"] for row in list_definitions(connection)] == ["by-api", "nightly"]


def test_an_empty_table_of_definitions_prunes_them_all(connection: PgConnection, apply: Apply) -> None:
    apply(NIGHTLY)
    assert kinds(apply("[definitions]", prune=True)) == {"nightly": "removed"}
    assert apply("[definitions]") == {}
    assert lines([]) == []


# Who manages a definition


def test_a_file_takes_over_what_is_as_it_says_without_a_new_revision(connection: PgConnection, apply: Apply) -> None:
    before = kept(connection, "yearly", managed_by="api")
    done = apply(YEARLY_TOML)
    assert lines(list(done.values())) == ["= yearly: unchanged, now managed by the file"]
    assert row_of(connection) == {**before, "managed_by": "file"}
    audit = last_audit(connection)
    assert (audit["action"], audit["before"]["managed_by"], audit["after"]["managed_by"]) == ("adopt", "api", "file")
    assert kinds(apply(YEARLY_TOML)) == {"yearly": "unchanged"}


def test_a_file_takes_over_what_it_changes(connection: PgConnection, apply: Apply) -> None:
    kept(connection, "yearly", priority=7)
    assert kinds(apply(YEARLY_TOML)) == {"yearly": "changed"}
    assert (row_of(connection)["managed_by"], row_of(connection)["revision"]) == ("file", 2)


@pytest.mark.parametrize(("managed_by", "named"), [("file", "the file"), ("api", "the API")])
def test_the_code_leaves_alone_what_others_have_taken_over(
    connection: PgConnection, managed_by: str, named: str
) -> None:
    declared = code(Definition("yearly", builtin.NOOP, "@yearly"))
    apply_code(connection, declared, OPERATOR)
    before = kept(connection, "yearly", managed_by, priority=7)
    done = apply_code(connection, declared, OPERATOR, prune=True)
    assert lines(done) == [f"! yearly: not changed: managed by {named}"]
    assert row_of(connection) == before
    assert apply_code(connection, code(), OPERATOR, prune=True) == []
    assert row_of(connection) == before
    remove(connection, "yearly", OPERATOR)
    assert kinds(apply_code(connection, declared, OPERATOR)) == {"yearly": "created"}


def test_code_declares_the_same_fields_as_files(connection: PgConnection, tmp_path: Path) -> None:
    in_code = Definition(
        "nightly",
        CLEANUP_NIGHTLY,
        "17 3 * * *",
        payload={"day": "{date-1}"},
        time_zone="Europe/Berlin",
        max_lateness=timedelta(hours=6),
        jitter="5m",
        queue="nights",
    )
    more = 'time_zone = "Europe/Berlin"\nmax_lateness = "6h"\njitter = 300\nqueue = "nights"\n'
    apply_code(connection, code(in_code), OPERATOR)
    file = written(tmp_path, NIGHTLY + more)
    assert kinds(apply_file(connection, file, CATALOGUE, OPERATOR)) == {"nightly": "adopted"}


def test_of_code_that_declares_something_wrong_nothing_is_applied(connection: PgConnection) -> None:
    declared = code(
        Definition("good", builtin.NOOP),
        Definition("bad", builtin.NOOP, "99 * * * *"),
        Definition("Worse", builtin.NOOP),
    )
    with pytest.raises(DefinitionFileInvalid) as refused:
        apply_code(connection, declared, OPERATOR)
    assert str(refused.value).splitlines()[0] == "the code: nothing was applied:"
    assert "definition 'bad', schedule: minute '99' is out of range" in str(refused.value)
    assert "definition 'Worse', name: " in str(refused.value)
    assert list_definitions(connection) == []


# A definition that changes


def test_an_edit_begins_a_new_revision_from_now_and_leaves_what_was_decided_before(
    connection: PgConnection, apply: Apply
) -> None:
    apply(f'{YEARLY_TOML}catch_up = "latest"\n')
    overdue(connection)
    apply(f'{YEARLY_TOML}catch_up = "skip"\npriority = 9\n')
    # By the rules before the edit: the last of the three times runs, with its old options.
    assert decided(connection) == [("missed", 1), ("missed", 1), ("enqueued", 1)]
    [run] = fetch_all(connection, "SELECT * FROM rowcall.job_runs")
    assert (run["definition_id"], run["priority"], run["status"]) == (row_of(connection)["id"], 0, "queued")
    edited = row_of(connection)
    assert edited["revision"] == 2
    assert is_later_than_now(connection, edited["next_run_at"])


def test_no_time_is_lost_between_what_an_edit_decides_and_what_comes_next(connection: PgConnection) -> None:
    kept(connection, "often", schedule="* * * * *")
    back = "UPDATE rowcall.job_definitions SET next_run_at = date_trunc('minute', now()) - interval '3 hours'"
    fetch_all(connection, back)
    edited = kept(connection, "often", schedule="* * * * *", priority=1)
    last = fetch_value(connection, "SELECT max(nominal_at) FROM rowcall.schedule_occurrences")
    assert edited["next_run_at"] == last + timedelta(minutes=1)


def test_a_schedule_that_is_taken_away_leaves_nothing_due(connection: PgConnection, apply: Apply) -> None:
    apply(YEARLY_TOML)
    overdue(connection)
    done = apply(YEARLY_TOML.replace('schedule = "@yearly"', ""))
    assert lines(list(done.values())) == ['~ yearly: schedule "@yearly" -> -']
    assert row_of(connection)["next_run_at"] is None
    assert len(decided(connection)) == 3


def test_an_edit_leaves_a_paused_definition_paused(connection: PgConnection, apply: Apply) -> None:
    apply(YEARLY_TOML)
    paused = pause(connection, "yearly", CATALOGUE, OPERATOR)
    overdue(connection)
    apply(f"{YEARLY_TOML}priority = 9\n")
    assert row_of(connection)["paused_at"] == paused["paused_at"]
    assert decided(connection) == [("skipped", 1)] * 3


def test_a_removed_definition_that_comes_back_goes_on_with_its_revisions(
    connection: PgConnection, apply: Apply
) -> None:
    first = apply(YEARLY_TOML)["yearly"].row
    apply("[definitions]", prune=True)
    back = apply(YEARLY_TOML)["yearly"]
    assert (back.change, back.row["id"], back.row["revision"]) == ("created", first["id"], 2)
    assert back.row["removed_at"] is None
    assert is_later_than_now(connection, back.row["next_run_at"])
    assert audited(connection) == [("create", "yearly"), ("remove", "yearly"), ("create", "yearly")]
