"""A page that reads from a standby says how old each screen is, and shows the reader's own changes at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.api.serving import Server, served
from tests.api.standby.conftest import ahead, behind
from tests.page.browser.tabs import DESKTOP, PHONE, Open, Tab
from tests.page.filled import Filled
from tests.support.processes import wait_until
from tests.support.standby import Leader, StandbyServer

pytestmark = pytest.mark.program("chromium")

__all__ = ["ahead", "behind"]

FROM_STANDBY = re.compile(r"^As of \d+\.\d s ago, from the standby\.$")

# Longer than the page waits between two updates.
LATER = 6_000


@pytest.fixture(scope="module")
def module_url(ahead: Leader) -> str:
    """Return the leader's URL."""
    return ahead.url


@pytest.fixture(scope="module")
def server(
    ahead: Leader, behind: StandbyServer, tmp_path_factory: pytest.TempPathFactory, example_app: None
) -> Iterator[Server]:
    """Yield a server that reads from the standby."""
    urls = {"DATABASE_URL": ahead.url, "ROWCALL_READ_URL": behind.url}
    settings = {"ROWCALL_APP": "rowcall_example", "ROWCALL_API_WORKERS": "1"}
    with served({**os.environ, **urls, **settings}, tmp_path_factory.mktemp("page"), None) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def answers(server: Server) -> bool:
    """Return whether the server reads from the standby."""
    return bool(server.ask(b"GET /readyz HTTP/1.1\r\nHost: here\r\n\r\n").told["standby"] == "answers")


@pytest.fixture
def tab(open_tab: Open, server: Server) -> Tab:
    """Return a tab whose clock the test advances; the standby answers."""
    wait_until(lambda: answers(server), "the standby answers")
    tab = open_tab()
    tab.page.clock.install()
    return tab


def test_each_screen_and_each_update_says_how_old_it_is(tab: Tab, server: Server, behind: StandbyServer) -> None:
    page = tab.go("/runs")
    age = page.locator("#as-of")
    expect(age).to_have_text(FROM_STANDBY)
    for size, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")):
        tab.look(size, scheme)
        assert tab.violations("color-contrast") == []
        assert tab.overflow() <= 0
    behind.kill()
    page.clock.run_for(LATER)
    expect(age).to_be_hidden()
    behind.start()
    wait_until(lambda: answers(server), "the standby answers again")
    page.clock.run_for(LATER)
    expect(age).to_have_text(FROM_STANDBY)


def test_an_operator_sees_an_own_change_at_once(tab: Tab, filled: Filled, behind: StandbyServer) -> None:
    with behind.paused():
        page = tab.go(f"/runs/{filled.dead}")
        page.get_by_text("Retry…", exact=True).click()
        page.get_by_role("button", name=f"Retry run {filled.dead}", exact=True).click()
        expect(page.get_by_role("status").first).to_have_text("The run is queued again.")
        tab.go("/runs?status=queued")
        expect(page.locator("#list")).to_contain_text(str(filled.dead))
        expect(page.locator("#as-of")).to_be_hidden()
