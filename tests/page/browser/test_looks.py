"""Each screen on a desktop and a phone, light and dark: usable by everybody, and nothing goes wrong in the browser."""

from __future__ import annotations

import pytest

from rowcall.base.database import PgConnection
from rowcall.queue.claims.handover import holder_of
from rowcall.status import Status
from tests.page.browser.tabs import DESKTOP, PHONE, Open, Tab
from tests.page.filled import Filled
from tests.support.rows import run_in

pytestmark = pytest.mark.program("chromium")

# What depends on the colours and on the width.
COLOURS, WIDTH = ("color-contrast", "link-in-text-block"), ("target-size", "scrollable-region-focusable")


def test_every_screen_is_usable_in_every_look(open_tab: Open, filled: Filled) -> None:
    tab = open_tab("admin")
    found = [problem for name, path in filled.screens.items() for problem in problems(tab, name, path)]
    assert found == [], "\n".join(found)


def test_who_has_not_signed_in_sees_a_form_that_everybody_can_use(open_tab: Open) -> None:
    assert problems(open_tab(None), "sign-in", "") == []


def test_who_may_not_read_sees_a_screen_that_everybody_can_use(open_tab: Open, filled: Filled) -> None:
    assert problems(open_tab("operate"), "run-shape", f"/runs/{filled.dead}") == []


def test_what_was_found_and_what_is_wrong_in_a_form_can_be_read_by_everybody(open_tab: Open, filled: Filled) -> None:
    tab = open_tab("operator")
    paths = {
        "find": "/find?q=nothing",
        "clone": f"/runs/{filled.dead}/clone",
        "wrong": "/runs?status=dead&key=a&created_after=someday&run_before=never",
    }
    found = [problem for name, path in paths.items() for problem in problems(tab, name, path)]
    # A browser complains of an answer that refuses a filter, too.
    assert [one for one in found if " 422 " not in one] == []


def test_what_was_handed_over_can_be_seen_by_everybody(open_tab: Open, committed: PgConnection) -> None:
    silent = "now() - interval '100 seconds'"
    for holder, renewed in ((holder_of("parcels", "shop.send"), "now()"), ("consumer gpu-1:7:abc", silent)):
        run_in(committed, Status.RUNNING, locked_by=f"'{holder}'", started_at=silent, updated_at=renewed)
    tab = open_tab("operator")
    found = [problem for path in ("/workers", "") for problem in problems(tab, path, path)]
    assert found == [], "\n".join(found)


def problems(tab: Tab, name: str, path: str) -> list[str]:
    """Return what is wrong with a screen in any of its looks."""
    found = []
    tab.look(DESKTOP, "light")
    page = tab.go(path)
    # Forms that are closed at first are looked at, too.
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found += [f"{name}: {one}" for one in tab.violations()]
    for size, scheme, rules in (
        (DESKTOP, "dark", COLOURS),
        (PHONE, "dark", (*COLOURS, *WIDTH)),
        (PHONE, "light", (*COLOURS, *WIDTH)),
    ):
        tab.look(size, scheme)
        found += [f"{name}, {size['width']}, {scheme}: {one}" for one in tab.violations(*rules)]
        if tab.overflow() > 0:
            found.append(f"{name}, {size['width']}: {tab.overflow()} pixels too wide")
    # A browser complains of an address that is not found.
    found += [f"{name}: {one}" for one in tab.wrong if name != "not-found" or " 404 " not in one]
    tab.wrong.clear()
    return found
