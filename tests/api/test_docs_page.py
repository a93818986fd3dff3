"""/docs: a page to read and try the API on, loaded entirely from this server."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flask
import flask.testing
import pytest
from werkzeug.serving import make_server

from rowcall_api.routes.docs import ASSETS
from tests.api.conftest import told
from tests.support.processes import LIMIT_SECONDS

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

# Its standard error contains, among other things, each line of the page's console.
CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",  # it would refuse to start as root; the page is ours
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--enable-logging=stderr",
    # Virtual time, which passes only while nothing is loading.
    "--virtual-time-budget=10000",
    "--dump-dom",
]


@pytest.fixture
def client(app: flask.Flask) -> flask.testing.FlaskClient:
    """Return a browser without a key."""
    return app.test_client()


def named(client: flask.testing.FlaskClient) -> list[str]:
    """Return the URLs that the page loads."""
    found: list[str] = re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]*)"', client.get("/docs").text)
    return found


def test_the_servers_address_leads_to_the_page(client: flask.testing.FlaskClient) -> None:
    led = client.get("/")
    assert (led.status_code, led.headers["Location"]) == (302, "admin")
    assert client.get("/", follow_redirects=True).mimetype == "text/html"


def test_the_page_and_all_it_names_come_from_this_server_without_a_key(client: flask.testing.FlaskClient) -> None:
    assert client.get("/docs").mimetype == "text/html"
    assert {f"docs/{name}" for name in ASSETS} == set(named(client))
    for name in named(client):
        answer = client.get(f"/{name}")
        assert (answer.status_code, bool(answer.data)) == (200, True), name
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_stylesheet_brings_its_pictures_with_it(client: flask.testing.FlaskClient) -> None:
    pictures = re.findall(r"url\(\s*[\"']?([^:)]*:?)", client.get("/docs/swagger-ui.css").text)
    assert set(pictures) == {"data:"}
    assert "@import" not in client.get("/docs/swagger-ui.css").text


def test_the_browser_is_told_to_load_nothing_from_elsewhere(client: flask.testing.FlaskClient) -> None:
    policy = client.get("/docs").headers["Content-Security-Policy"]
    sources = {source for rule in policy.split("; ") for source in rule.split()[1:]}
    assert "default-src 'none'" in policy
    assert sources == {"'none'", "'self'", "data:"}
    assert "script-src 'self'" in policy
    assert "<script>" not in client.get("/docs").text


def test_what_a_browser_has_already_is_not_sent_again(client: flask.testing.FlaskClient) -> None:
    first = client.get("/docs/swagger-ui-bundle.js")
    assert first.headers["Cache-Control"] == "no-cache"
    again = client.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("name", ["swagger-ui.js", "oauth2-redirect.html", "..%2findex.html", "%2fetc%2fpasswd"])
def test_no_other_file_is_served(client: flask.testing.FlaskClient, name: str) -> None:
    assert client.get(f"/docs/{name}").status_code == 404


@contextmanager
def serving(app: flask.Flask, asked: list[str]) -> Iterator[str]:
    """Serve the application on a loopback port, and collect the requested paths in `asked`."""

    def noting(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        asked.append(environ["PATH_INFO"])
        return app(environ, start_response)

    server = make_server("127.0.0.1", 0, noting, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.program("chromium")
def test_a_browser_that_reaches_nobody_else_shows_every_route(app: flask.Flask, tmp_path: Path) -> None:
    asked: list[str] = []
    with serving(app, asked) as url:
        shown = subprocess.run(
            [*CHROMIUM, f"--user-data-dir={tmp_path}", f"{url}/docs"],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=True,
        )
    described = told(app.test_client().get("/openapi.json"))
    assert set(re.findall(r'data-path="([^"]*)"', shown.stdout)) == set(described["paths"])
    assert ">Authorize<" in shown.stdout
    assert set(asked) == {"/docs", "/openapi.json", *(f"/docs/{name}" for name in ASSETS)}
    # The console would show what the policy refused and what could not be loaded.
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []
