"""Find runs by id, key or payload, and effects by key or reference, from the field at the top of each screen."""

from __future__ import annotations

import flask
from werkzeug.exceptions import BadRequest, Forbidden

from rowcall import effects, queue
from rowcall.base.database import LARGEST_ID, Connection, Row
from rowcall.base.errors import RunNotFound
from rowcall.queue import Filter
from rowcall_api.http.body import parsed
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import Part, part, seconds_left
from rowcall_api.rights import may

RUNS_MOST = 20


@blueprint.get("/find")
def find() -> flask.typing.ResponseReturnValue:
    """Redirect to the only match of this id, key or reference, or list all; a JSON object lists runs by payload."""
    sought = flask.request.args.get("q", "").strip()
    if not may("read"):  # searching for keys would let a caller guess what payloads contain
        if (run_id := _as_id(sought)) is None:
            raise Forbidden("your key lacks the scope `read`, so you can find a run only by its id")
        return flask.redirect(flask.url_for("page.run", run_id=run_id))
    if not sought:
        return flask.redirect(flask.url_for("page.runs"))
    if _is_object(sought):
        return flask.redirect(flask.url_for("page.runs", payload=sought))
    runs = part(_runs, sought)
    # People type the id of a run far more often than the key of an effect that is the same number.
    if runs.value and runs.value[0]["id"] == _as_id(sought):
        return flask.redirect(flask.url_for("page.run", run_id=runs.value[0]["id"]))
    found = part(effects.find_effects, sought)
    if only := _only(runs, found):
        return flask.redirect(only)
    return flask.render_template("rowcall_page/find.html", sought=sought, runs=runs, found=found)


def _runs(connection: Connection, sought: str) -> list[Row]:
    """Return the run with this id, or those with this key."""
    run_id = _as_id(sought)
    if run_id is not None:
        try:
            return [queue.get_run(connection, run_id)]
        except RunNotFound:
            pass  # numbers can be keys, too
    return queue.list_runs(connection, Filter(key=sought), RUNS_MOST, seconds=seconds_left()).runs


def _as_id(sought: str) -> int | None:
    is_id = sought.isascii() and sought.isdigit() and len(sought) < 20 and 0 < int(sought) <= LARGEST_ID
    return int(sought) if is_id else None


def _is_object(sought: str) -> bool:
    """Whether this is a JSON object, and so part of a payload; a key such as "{shop-7}:order" is not."""
    try:
        return isinstance(parsed(sought, "the text"), dict)
    except BadRequest:
        return False


def _only(runs: Part[list[Row]], found: Part[effects.Found]) -> str | None:
    """Return the address of the only match, if both searches have finished."""
    if runs.value is None or found.value is None:
        return None
    addresses = [flask.url_for("page.run", run_id=run["id"]) for run in runs.value]
    addresses += [flask.url_for("page.effect", kind=one["kind"], effect_id=one["id"]) for one in found.value.effects]
    return addresses[0] if len(addresses) == 1 else None
