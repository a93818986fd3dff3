"""Hostile text in every field neither executes in a browser nor breaks a screen."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from rowcall.base import database
from tests.page.browser.tabs import Open, Tab
from tests.page.filled import Filled, fill
from tests.page.hostile import HOSTILE, hostile

pytestmark = pytest.mark.program("chromium")


@pytest.fixture(scope="module")
def filled(module_url: str) -> Filled:
    """Fill the database with hostile text."""
    with database.transaction(module_url) as connection:
        return fill(connection, hostile)


def problems(tab: Tab, path: str) -> list[str]:
    """Load a screen, point at everything, and return what went wrong."""
    page = tab.go(path)
    # An attribute of its own would be an event handler, which some event calls.
    page.evaluate("""document.querySelectorAll('main *').forEach(one => ['mouseover', 'focus', 'load', 'error'].forEach(
        name => one.dispatchEvent(new Event(name))))""")
    found = [] if page.evaluate("window.hit === undefined") else [f"{path}: executed"]
    # A browser complains of what the server refuses.
    found += [f"{path}: {one}" for one in tab.wrong if " 404 " not in one and " 422 " not in one]
    tab.wrong.clear()
    return found


def test_nothing_of_an_app_executes_on_any_screen(open_tab: Open, filled: Filled) -> None:
    tab = open_tab("admin")
    found = [problem for path in filled.screens.values() for problem in problems(tab, path)]
    assert found == []
    # What was sent as text is read as text.
    assert "<script>window.hit=1</script>" in tab.go(f"/runs/{filled.dead}").inner_text("main")


def test_nothing_of_an_address_executes(open_tab: Open) -> None:
    tab = open_tab("admin")
    filters = [("/runs", "key"), ("/runs", "payload"), ("/audit", "who"), ("/find", "q"), ("/failures", "job_type")]
    text = "".join(HOSTILE)
    assert [wrong for path, name in filters for wrong in problems(tab, f"{path}?{urlencode({name: text})}")] == []


def test_live_updates_with_hostile_text_execute_nothing(open_tab: Open, filled: Filled) -> None:
    tab = open_tab("admin")
    tab.page.clock.install()
    page = tab.go(f"/runs/{filled.dead}")
    page.evaluate("document.querySelectorAll('[data-live]').forEach(one => one.replaceChildren())")
    page.clock.run_for(6_000)
    page.wait_for_selector("#attempts .attempt, #attempts li")
    assert page.evaluate("window.hit === undefined")
    assert tab.wrong == []


def test_a_name_in_bidi_marks_does_not_turn_what_follows_around(open_tab: Open, filled: Filled) -> None:
    tab = open_tab("admin")
    page = tab.go("/runs?job_type=charge_invoice")
    assert page.locator("#list td.long").first.evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate"
