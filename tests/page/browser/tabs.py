"""A tab of a real browser, in which an operator has signed in; it notes whatever goes wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

Open = Callable[..., "Tab"]

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

# What people with weak eyes, a keyboard or a screen reader need, and what axe-core recommends beyond that.
CHECKED = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

# How far one must scroll to the right to see the whole page.
OVERFLOW = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class Tab:
    """A tab on the server's page; paths are written without /admin."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._requested)

    def go(self, path: str = "") -> Page:
        """Load a screen."""
        self.page.goto(f"{self.base}/admin{path}")
        return self.page

    def look(self, size: dict[str, int], scheme: str) -> None:
        """Change the size of the window, and between light and dark."""
        self.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")

    def violations(self, *rules: str) -> list[str]:
        """Return what axe-core finds on the screen: with these rules, or with all."""
        if not self.page.evaluate("typeof axe !== 'undefined'"):
            self.page.evaluate(AXE_SCRIPT)
        only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": CHECKED}
        found: dict[str, Any] = self.page.evaluate(
            "only => axe.run({runOnly: only, resultTypes: ['violations']})", only
        )
        return [
            f"{one['id']}: {node['html'][:150]} {node['failureSummary']}"
            for one in found["violations"]
            for node in one["nodes"]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the screen is wider than the window."""
        pixels: int = self.page.evaluate(OVERFLOW)
        return pixels

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(message.text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:")):
            self.wrong.append(f"asked another host: {request.url}")


def opened(context: BrowserContext, base: str) -> Tab:
    """Return a new tab."""
    return Tab(context.new_page(), base)
