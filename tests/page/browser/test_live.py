"""What the page's script adds: live updates, which one switch stops, and which disturb nobody; keys; exact times."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from rowcall.base.database import PgConnection, fetch_all
from tests.page.browser.tabs import Open, Tab
from tests.page.filled import Filled

pytestmark = pytest.mark.program("chromium")

# Longer than the page waits between two updates.
LATER = 6_000

# Whether a tab still shows the document that was marked.
MARK, MARKED = "window.marked = true", "window.marked === true"


@pytest.fixture
def tab(open_tab: Open) -> Iterator[Tab]:
    """Yield a tab whose clock the test advances, with a reader in Berlin; nothing may go wrong in it."""
    tab = open_tab(timezone_id="Europe/Berlin")
    tab.page.clock.install()
    yield tab
    assert tab.wrong == []


def shows(tab: Tab, path: str) -> Page:
    """Load a screen, and mark its document."""
    page = tab.go(path)
    page.evaluate(MARK)
    return page


def change_error(connection: PgConnection, run_id: int, error: str) -> None:
    """Change what the list and the run's screen show of a run."""
    fetch_all(connection, "UPDATE rowcall.job_runs SET last_error = %(e)s WHERE id = %(r)s", {"e": error, "r": run_id})


def test_what_changes_appears_without_loading_the_screen_again(
    tab: Tab, filled: Filled, committed: PgConnection
) -> None:
    page = shows(tab, "/runs?job_type=charge_invoice")
    expect(page.locator("#list")).to_contain_text("the card has expired")
    change_error(committed, filled.dead, "the card is lost")
    page.clock.run_for(LATER)
    expect(page.locator("#list")).to_contain_text("the card is lost")
    assert page.evaluate(MARKED)


def test_one_switch_stops_the_updates_of_all_screens_and_starts_them_again(
    tab: Tab, filled: Filled, committed: PgConnection
) -> None:
    page = shows(tab, "/runs?job_type=charge_invoice")
    switch = page.get_by_role("button", name="Live")
    expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click()
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    for path in ("/runs?job_type=charge_invoice", "/queues"):
        page = tab.go(path)
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "false")
        asked.clear()
        page.clock.run_for(10 * LATER)
        assert page.evaluate("document.visibilityState") == "visible"
        assert asked == []
    page = tab.go("/runs?job_type=charge_invoice")
    change_error(committed, filled.dead, "the card is blocked")
    page.keyboard.press("l")
    expect(page.locator("#list")).to_contain_text("the card is blocked")


def test_an_open_part_and_the_focus_stay_while_other_parts_change(
    tab: Tab, filled: Filled, committed: PgConnection
) -> None:
    page = shows(tab, f"/runs/{filled.dead}")
    stack = page.locator("#attempts details").first
    stack.locator("summary").click()
    page.locator("#effects a").first.focus()
    page.locator("#effects a").first.evaluate("one => { one.marked = true; }")
    fetch_all(committed, "UPDATE rowcall.job_attempts SET error = 'another error'")
    fetch_all(committed, "UPDATE rowcall.payments SET provider_reference = 'r-1'")
    text = "UPDATE rowcall.run_logs SET text = 'another line' WHERE run_id = %(r)s"
    fetch_all(committed, text, {"r": filled.dead})
    page.clock.run_for(LATER)
    expect(page.locator("#log")).to_contain_text("another line")
    assert stack.evaluate("one => one.open")
    assert page.evaluate("document.activeElement.marked === true")


def test_a_form_that_is_being_filled_in_keeps_its_text(tab: Tab, filled: Filled, committed: PgConnection) -> None:
    page = shows(tab, f"/runs/{filled.dead}")
    page.locator("summary", has_text="Retry").click()
    reason = page.get_by_label("Reason").first
    reason.fill("the provider is back")
    text = "UPDATE rowcall.run_logs SET text = 'one more line' WHERE run_id = %(r)s"
    fetch_all(committed, text, {"r": filled.dead})
    page.clock.run_for(LATER)
    expect(page.locator("#log")).to_contain_text("one more line")
    expect(reason).to_have_value("the provider is back")


def test_a_server_that_does_not_answer_is_said_until_it_answers(tab: Tab) -> None:
    page = shows(tab, "/queues")
    page.context.set_offline(True)
    page.clock.run_for(LATER)
    expect(page.get_by_role("status")).to_contain_text("The server is not responding")
    page.context.set_offline(False)
    page.clock.run_for(LATER)
    expect(page.get_by_text("The server is not responding")).to_have_count(0)
    # The browser itself complains of the failed request.
    tab.wrong[:] = [one for one in tab.wrong if "ERR_INTERNET_DISCONNECTED" not in one]


def test_the_end_of_the_session_is_said(tab: Tab, committed: PgConnection) -> None:
    page = shows(tab, "/queues")
    fetch_all(committed, "DELETE FROM rowcall.page_sessions")
    page.clock.run_for(LATER)
    expect(page.get_by_role("status")).to_contain_text("Your session has ended")
    assert page.evaluate(MARKED)


def test_keys_lead_to_screens_and_do_nothing_while_one_types(tab: Tab) -> None:
    page = shows(tab, "")
    page.keyboard.press("/")
    page.keyboard.type("gr?l")
    find = page.get_by_role("searchbox")
    expect(find).to_be_focused()
    expect(find).to_have_value("gr?l")
    expect(page.get_by_role("dialog")).to_have_count(0)
    find.fill("")
    find.blur()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("find a run")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("r")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


def test_what_is_typed_after_the_slash_finds_a_run(tab: Tab, filled: Filled) -> None:
    page = shows(tab, "")
    page.keyboard.press("/")
    page.keyboard.type(f"{filled.dead}\n")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {filled.dead}")


def test_a_key_shows_the_exact_times_of_all_screens_and_the_relative_ones_again(
    tab: Tab, filled: Filled, committed: PgConnection
) -> None:
    page = shows(tab, f"/runs/{filled.dead}")
    words = page.locator("dl.facts time").first.inner_text()
    page.keyboard.press("t")
    for path in (f"/runs/{filled.dead}", "/runs?status=dead"):
        are_exact(tab.go(path))
    change_error(committed, filled.dead, "the card is old")
    page.clock.run_for(LATER)
    expect(page.locator("#list")).to_contain_text("the card is old")
    are_exact(page)
    page.keyboard.press("t")
    page = tab.go(f"/runs/{filled.dead}")
    expect(page.locator("dl.facts time").first).to_have_text(words)


def test_who_uses_no_such_key_finds_a_button_for_exact_times_beside_the_keys(tab: Tab, filled: Filled) -> None:
    page = shows(tab, f"/runs/{filled.dead}")
    other = page.context.new_page()
    other.goto(page.url)
    words = page.locator("dl.facts time").first.inner_text()
    page.get_by_role("button", name="?", exact=True).click()
    switch = page.get_by_role("button", name="Exact times")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.focus()
    page.keyboard.press("Enter")
    expect(switch).to_have_attribute("aria-pressed", "true")
    are_exact(page)
    expect(other.locator("dl.facts time").first).to_have_text(page.locator("dl.facts time").first.inner_text())
    page.keyboard.press("Space")
    expect(switch).to_have_attribute("aria-pressed", "false")
    expect(page.locator("dl.facts time").first).to_have_text(words)
    assert tab.violations() == []


def are_exact(page: Page) -> None:
    """Check that the times of a screen are exact."""
    times = page.locator("time:not(.local)").all_inner_texts()
    assert times
    assert not [time for time in times if not re.fullmatch(r"\d\d/\d\d/\d{4}, \d\d:\d\d:\d\d \w+", time)]


# The hours before ten, midnight and both halves of the year: in UTC, and as a reader in Berlin sees them.
EXACT = [
    ("2026-01-05T23:04:07+00:00", "06/01/2026, 00:04:07 CET"),
    ("2026-07-05T06:04:07+00:00", "05/07/2026, 08:04:07 CEST"),
    ("2026-11-26T12:34:56+00:00", "26/11/2026, 13:34:56 CET"),
]


@pytest.mark.parametrize(("moment", "exact"), EXACT)
def test_a_click_shows_a_time_in_the_readers_zone_and_back(tab: Tab, filled: Filled, moment: str, exact: str) -> None:
    time = shows(tab, f"/runs/{filled.dead}").locator("dl.facts time").first
    words = time.inner_text()
    expect(time).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))
    time.evaluate("(shown, moment) => { shown.dateTime = moment; }", moment)
    time.click()
    expect(time).to_have_text(exact)
    time.click()
    expect(time).to_have_text(words)
