"""The status machine as data: consistent, and the source of every description of it."""

from __future__ import annotations

from pathlib import Path

from rowcall.schema.tables import job_runs
from rowcall.status import BY_EVENT, CHECKS, TRANSITIONS, Event, Status, Who, allowed, as_markdown, mermaid, sources_of

ROOT = Path(__file__).parents[3]


def test_every_event_stands_in_the_table_once() -> None:
    assert [transition.event for transition in TRANSITIONS] == list(Event)


def test_every_status_can_be_reached_and_only_enqueue_starts_from_nothing() -> None:
    assert {target for transition in TRANSITIONS for target in transition.targets} == set(Status)
    assert [transition.event for transition in TRANSITIONS if not transition.sources] == [Event.ENQUEUE]


def test_what_is_allowed_follows_from_the_table() -> None:
    assert allowed(Status.SUCCEEDED) == ()
    assert allowed(Status.DEAD) == (Event.RETRY,)
    assert allowed(Status.QUEUED, Who.OPERATOR) == (Event.CANCEL, Event.RUN_NOW, Event.RESCHEDULE)


def test_a_guard_is_the_list_of_sources() -> None:
    assert sources_of(Event.CLAIM) == "('queued', 'failed')"


def test_the_tables_checks_are_those_of_the_machine() -> None:
    conditions = {str(constraint.sqltext) for constraint in job_runs.constraints if hasattr(constraint, "sqltext")}
    assert set(CHECKS.values()) <= conditions


def test_the_diagram_draws_every_transition() -> None:
    drawn = mermaid()
    for event, transition in BY_EVENT.items():
        for source in transition.sources or ("[*]",):
            for target in transition.targets:
                assert f"    {source} --> {target}: {event}\n" in drawn


def test_the_page_of_statuses_is_the_one_the_code_makes() -> None:
    assert (ROOT / "docs" / "status.md").read_text() == as_markdown(), "run make docs"
