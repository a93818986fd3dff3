"""Debian's Chromium on a real server, whose database contains something of everything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from rowcall.access.api_keys import find_caller
from rowcall.access.page_sessions import begin_session
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall_api.page.access import COOKIE
from tests.api.serving import Server
from tests.conftest import PROGRAM_PATH
from tests.page.browser.tabs import DESKTOP, Open, Tab, opened
from tests.page.filled import Filled, fill

# It would refuse to start as root, and the page is ours.
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Yield the browser."""
    program = shutil.which("chromium", path=PROGRAM_PATH)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def filled(module_url: str) -> Filled:
    """Fill the module's database."""
    with database.transaction(module_url) as connection:
        return fill(connection)


@pytest.fixture
def open_tab(
    chromium: Browser, server: Server, keys: dict[str, str], filled: Filled, committed: PgConnection
) -> Iterator[Open]:
    """Return a function that opens a tab in which the operator has signed in, or the owner of another key."""
    base, contexts = f"http://127.0.0.1:{server.port}", []

    def begin(scope: str | None = "operator", **options: Any) -> Tab:
        context = chromium.new_context(**{"viewport": DESKTOP, "locale": "en-GB", **options})
        context.set_default_timeout(30_000)
        contexts.append(context)
        if scope is not None:
            caller = find_caller(committed, keys[scope])
            assert caller is not None
            token = begin_session(committed, caller)
            context.add_cookies([{"name": COOKIE, "value": token, "url": base, "httpOnly": True}])
        return opened(context, base)

    yield begin
    for context in contexts:
        context.close()
