"""The audit log on the page: what was changed with a link to it, the fields that differ, and the filters."""

from __future__ import annotations

import pytest

from rowcall import definitions, queue
from rowcall.access.audit import Operator, record
from rowcall.base.database import PgConnection, fetch_all
from rowcall.job_types import catalogue
from rowcall_api.page.audited import Difference, differences
from tests.page.conftest import Browse

MAKER = Operator("cli:ada")


@pytest.fixture(autouse=True)
def no_changes(committed: PgConnection) -> None:
    """Begin each test with an empty log."""
    fetch_all(committed, "ALTER TABLE rowcall.audit_log DISABLE TRIGGER USER; TRUNCATE rowcall.audit_log")


def test_each_kind_of_subject_leads_to_its_screen(browse: Browse, committed: PgConnection) -> None:
    admin = browse("admin")
    content = definitions.checked("nightly", {"job_type": "noop"}, catalogue())
    definitions.put(committed, "nightly", content, catalogue(), "api", MAKER)
    queue.pause_queue(committed, "mail", MAKER)
    for subject, number, after in (
        ("run", 5, {"status": "queued"}),
        ("effect", 6, {"kind": "sent_emails", "state": "applied"}),
        ("operation", 7, {"status": "running"}),
        ("key", 8, None),
    ):
        record(committed, "cli:ada", "change", subject, number, None, after)  # type: ignore[arg-type]
    shown = admin.get("/audit")
    for address in ("definitions/nightly", "queues/mail", "runs/5", "effects/sent_emails/6", "operations/7"):
        assert f"/admin/{address}" in shown.links
    assert "/admin/keys#key-8" in shown.links
    definitions.remove(committed, "nightly", MAKER)
    removed = admin.get("/audit?action=remove")
    assert "definition nightly" in removed.text
    assert "/admin/definitions/nightly" not in removed.links


def test_a_change_without_a_subjects_id_is_shown_without_a_link(browse: Browse, committed: PgConnection) -> None:
    record(committed, "cli:ada", "prune", "run", None, None, {"runs": 3})
    assert "prune run runs 3" in browse("admin").get("/audit").text


def test_only_the_fields_that_differ_are_shown(browse: Browse, committed: PgConnection) -> None:
    queue.limit_queue(committed, "mail", 3, MAKER)
    queue.limit_queue(committed, "mail", None, MAKER)
    shown = browse("admin").get("/audit?action=limit")
    assert "max_running 3 → none" in shown.text
    assert "max_running none → 3" in shown.text
    assert "paused_at" not in shown.text


def test_a_difference_has_both_sides_and_skips_what_is_equal() -> None:
    assert differences({"a": 1, "b": "x", "c": None}, {"b": "y", "c": None, "d": [1], "e": None}) == [
        Difference("a", "1", None),
        Difference("b", "x", "y"),
        Difference("d", None, "[1]"),
    ]
    assert differences(None, None) == []
    assert len(str(differences(None, {"payload": "x" * 1000})[0].after)) == 300


def test_the_filters_select_and_are_kept(browse: Browse, committed: PgConnection) -> None:
    admin = browse("admin")
    queue.pause_queue(committed, "mail", MAKER)
    queue.resume_queue(committed, "mail", MAKER)
    shown = admin.send("/audit", "Filter", action="resume", who="cli:ada")
    assert "resume queue mail" in shown.text
    assert "pause queue mail" not in shown.text
    assert 'value="cli:ada"' in shown.html
    assert "No change matches." in admin.get("/audit", before="2 days ago").text
    assert "queue mail" in admin.get("/audit", after="1h").text


@pytest.mark.parametrize(
    ("asked", "field", "why"),
    [
        ({"subject_id": "x"}, "subject_id", "Must be a whole number above 0"),
        ({"subject_id": "5"}, "subject_id", "Needs a subject"),
        ({"subject": "nobody"}, "subject", "Must be one of run"),
        ({"after": "soon"}, "after", "is not a time"),
    ],
)
def test_a_wrong_filter_is_explained_at_its_field(browse: Browse, asked: dict[str, str], field: str, why: str) -> None:
    shown = browse("admin").get("/audit", **asked)
    assert shown.status == 200
    assert why in shown.html.split(f'id="{field}-wrong">')[1]


@pytest.mark.parametrize("scope", ["read", "operator"])
def test_only_admins_see_it(browse: Browse, scope: str) -> None:
    visitor = browse(scope)
    assert visitor.get("/audit").status == 403
    assert "/admin/audit" not in visitor.get("/workers").links
