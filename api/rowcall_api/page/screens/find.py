"""Find a run by its id or key, or an effect by its key or reference, from the field at the top of each screen."""

from __future__ import annotations

import flask

from rowcall import queue
from rowcall.base.database import LARGEST_ID, Connection, Row
from rowcall.queue import Filter
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once


@blueprint.get("/find")
@access.only_for("read")
def find() -> flask.typing.ResponseReturnValue:
    """Lead to the one thing that has this id or key, or to the list of those that could be meant."""
    sought = flask.request.args.get("q", "").strip()
    if not sought:
        return flask.redirect(flask.url_for("page.runs"))
    if sought.isascii() and sought.isdigit() and 0 < int(sought) <= LARGEST_ID:
        return flask.redirect(flask.url_for("page.run", run_id=int(sought)))
    found = at_once(_with_key, sought)
    if len(found) == 1:
        return flask.redirect(flask.url_for("page.run", run_id=found[0]["id"]))
    if found:
        return flask.redirect(flask.url_for("page.runs", key=sought))
    return flask.redirect(flask.url_for("page.effects", find=sought))


def _with_key(connection: Connection, key: str) -> list[Row]:
    return queue.list_runs(connection, Filter(key=key), 2).runs
