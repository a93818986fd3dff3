"""The operator's page in Chromium, on a database in which something of everything has happened, as pictures."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from unittest import mock

import flask
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from werkzeug.serving import WSGIRequestHandler, make_server

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.job_types import catalogue
from rowcall.local_postgres.server import open_server
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from tests.page.filled import Filled, fill

SETTINGS = {
    "ROWCALL_APP": "rowcall_example",
    "ROWCALL_ENVIRONMENT": "production",
    "ROWCALL_RATE_LIMIT": "0",
    "ROWCALL_LOG_LEVEL": "error",
}

WIDTH, HEIGHT = 1280, 800

# A longer screen is cut off, because a picture in a page must be readable.
HEIGHT_MOST = 1500

# The page has few colours.
COLOURS = 192


def draw_page(images: Path) -> None:
    """Write a picture of each screen, light and dark."""
    with tempfile.TemporaryDirectory() as name, mock.patch.dict(os.environ, SETTINGS):
        catalogue.cache_clear()
        with open_server(Path(name), "auto") as server:
            migrate(server.url, lock_timeout=3)
            with database.transaction(server.url) as connection:
                filled = fill(connection)
                key = api_keys.create_key(connection, "anna", ["admin", "operate", "read", "enqueue"], Operator("up"))
            app = create_app(server.url)
            with _served(app) as base, _chromium() as browser:
                for scheme in ("light", "dark"):
                    _draw_all(browser, base, key, filled, images, scheme)


def _draw_all(browser: Browser, base: str, key: str, filled: Filled, images: Path, scheme: str) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-GB", timezone_id="UTC")
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    ending = "-dark" if scheme == "dark" else ""
    page.goto(f"{base}/admin")
    _save(page, images / f"page-sign-in{ending}.png")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    for name, path in filled.screens.items():
        page.goto(f"{base}/admin{path}")
        _save(page, images / f"page-{name}{ending}.png")
    context.close()


def _save(page: Page, file: Path) -> None:
    """Write what the tab shows, with few colours."""
    picture = Image.open(BytesIO(page.screenshot(full_page=True)))
    cut = picture.crop((0, 0, WIDTH, min(picture.height, HEIGHT_MOST))).convert("RGB")
    cut.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


class _Silent(WSGIRequestHandler):
    """Logs no requests."""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Log nothing."""


@contextmanager
def _served(app: flask.Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        sys.exit(
            "there is no chromium on the PATH, which draws the operator's page: install it (apt-get install chromium)"
        )
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
