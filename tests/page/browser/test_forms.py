"""An operator changes things in a browser, with the page's script and without."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from rowcall.base.database import PgConnection, fetch_value
from tests.page.browser.tabs import Open
from tests.page.filled import Filled

pytestmark = pytest.mark.program("chromium")

STATUS = "SELECT status FROM rowcall.job_runs WHERE id = %(run_id)s"
UNRESOLVED = "UPDATE rowcall.payments SET state = 'unknown', applied_at = NULL RETURNING id"
OTHERS_CHANGE = "UPDATE rowcall.job_runs SET attempts = attempts + 1 WHERE id = %(run_id)s RETURNING id"


def press(page: Page, opener: str, button: str, said: str) -> None:
    """Open a form, send it with its button, and read what the next screen says."""
    form = page.locator("details.act", has=page.locator("summary", has_text=opener))
    if not form.evaluate("one => one.open"):
        form.locator("summary").click()
    form.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("status").first).to_have_text(said)


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without"])
def test_an_operator_mends_things(
    open_tab: Open, keys: dict[str, str], filled: Filled, committed: PgConnection, script: bool
) -> None:
    tab = open_tab(None, java_script_enabled=script)
    run_id = filled.dead

    page = tab.go(f"/runs/{run_id}")
    page.get_by_label("API key").fill(keys["operator"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {run_id}")
    press(page, "Retry…", f"Retry run {run_id}", "The run is queued again.")
    assert fetch_value(committed, STATUS, {"run_id": run_id}) == "queued"
    press(page, "Cancel…", f"Cancel run {run_id}", "The run is cancelled, or its worker has been asked to stop it.")
    assert fetch_value(committed, STATUS, {"run_id": run_id}) == "cancelled"

    page = tab.go("/queues/default")
    press(page, "Pause…", "Pause the queue default", "Paused.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("paused")
    press(page, "Resume…", "Resume the queue default", "Resumed.")
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("paused")

    page = tab.go(f"/definitions/{filled.definition}")
    press(page, "Pause…", f"Pause {filled.definition}", "Paused.")
    press(page, "Resume…", f"Resume {filled.definition}", "Resumed.")

    kind, effect = filled.effect
    fetch_value(committed, UNRESOLVED)
    page = tab.go(f"/effects/{kind}/{effect}")
    page.get_by_label("Yes, it happened").check()
    press(page, "Resolve…", "Record the outcome", "The outcome is recorded.")
    assert fetch_value(committed, "SELECT state FROM rowcall.payments") == "applied"

    page = tab.go(f"/operations/{filled.operation}")
    press(page, "Continue…", "Continue the operation", "The operation continues.")
    press(page, "Stop…", "Stop the operation", "The operation stops before its next batch.")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(tab.go("/runs").get_by_role("heading", level=1)).to_have_text("Sign in")
    assert tab.wrong == []


def test_a_stale_screen_changes_nothing_and_says_so(open_tab: Open, filled: Filled, committed: PgConnection) -> None:
    tab = open_tab()
    page = tab.go(f"/runs/{filled.waiting}")
    fetch_value(committed, OTHERS_CHANGE, {"run_id": filled.waiting})
    page.locator("summary", has_text="Cancel…").click()
    page.get_by_role("button", name=f"Cancel run {filled.waiting}", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("changed")
    assert fetch_value(committed, STATUS, {"run_id": filled.waiting}) == "queued"
