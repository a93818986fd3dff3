"""The style sheet, the script and the icon of the page."""

from __future__ import annotations

import mimetypes
from pathlib import Path

import flask

from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint

FOLDER = Path(__file__).parents[1] / "static"
NAMES = ("page.css", "page.js", "icon.svg")


@blueprint.get("/static/<any({}):name>".format(", ".join(f"'{name}'" for name in NAMES)))
@access.open_to_all
def file(name: str) -> flask.Response:
    """Serve one of the page's files, which browsers may cache but must revalidate."""
    response = flask.Response((FOLDER / name).read_bytes(), mimetype=mimetypes.guess_type(name)[0])
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    return response.make_conditional(flask.request)  # type: ignore[return-value]  # it returns the same response
