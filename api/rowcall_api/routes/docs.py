"""/docs: a page to read and try the API, with all its files served from here."""

from __future__ import annotations

import mimetypes
from pathlib import Path

import flask
import flask_swagger_ui

blueprint = flask.Blueprint("docs", __name__)

OURS = Path(__file__).parents[1] / "docs_page"
SWAGGER_UI = Path(flask_swagger_ui.__file__).parent / "dist"

# Name under /docs/ -> file; nothing else is served.
ASSETS = {
    "start.js": OURS / "start.js",
    "swagger-ui-bundle.js": SWAGGER_UI / "swagger-ui-bundle.js",
    "swagger-ui.css": SWAGGER_UI / "swagger-ui.css",
    "favicon-32x32.png": SWAGGER_UI / "favicon-32x32.png",
}

# The page may only contact this server; `data:` is for the icons in the stylesheet.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


def front() -> flask.typing.ResponseReturnValue:
    """Redirect / to the page; an app may replace this with its own route."""
    return flask.redirect("docs")


@blueprint.get("/docs")
def page() -> flask.Response:
    """Serve the page without a key; its requests use the key entered under Authorize."""
    return _sent(OURS / "index.html")


@blueprint.get("/docs/<any({}):name>".format(", ".join(f"'{name}'" for name in ASSETS)))
def asset(name: str) -> flask.Response:
    """Serve one of the page's files."""
    return _sent(ASSETS[name])


def _sent(path: Path) -> flask.Response:
    """Return a file, which browsers may cache but must revalidate."""
    response = flask.Response(path.read_bytes(), mimetype=mimetypes.guess_type(path.name)[0])
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.add_etag()
    response.make_conditional(flask.request)
    return response
