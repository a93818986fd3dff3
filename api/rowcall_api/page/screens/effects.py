"""Effects: whether a customer was emailed or charged, and the form that records what an operator found out."""

from __future__ import annotations

from typing import Any

import flask

from rowcall import effects, queue
from rowcall.base.database import Connection, Row
from rowcall.base.errors import RunNotFound
from rowcall.effects.lists import declared_kinds
from rowcall_api.http.database import transaction
from rowcall_api.page import access, forms
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import may_resolve, must_be_allowed_to_resolve
from rowcall_api.schemas.effects import ResolveSchema
from rowcall_api.standby.requests import standby_may_answer

# How many effects with an unknown outcome are shown above the list.
UNKNOWN_MOST = 20

HAPPENED = {"yes": True, "no": False}

# The status that is shown for a run that was pruned or erased, which no attempt can use.
GONE = "gone"


@blueprint.get("/effects", endpoint="effects")
@standby_may_answer
@access.only_for("read")
def show_all() -> str:
    """Show the effects that match the search; without one, those with an unknown outcome, and then the newest."""
    args = {name: flask.request.args.get(name, "").strip() for name in ("find", "kind", "state", "cursor")}
    shown: dict[str, Any] = {"asked": args, "kinds": part(_kinds), "states": list(effects.STATES)}
    if args["find"]:
        return flask.render_template(
            "rowcall_page/effects.html", **shown, found=part(effects.find_effects, args["find"])
        )
    states = [args["state"]] if args["state"] in effects.STATES else []
    page = part(effects.page_of_effects, args["kind"] or None, states, cursor=args["cursor"] or None)
    unknown = None if any(args.values()) else part(effects.page_of_effects, states=["unknown"], limit=UNKNOWN_MOST)
    return flask.render_template("rowcall_page/effects.html", **shown, page=page, unknown=unknown)


@blueprint.get("/effects/<kind>/<int:effect_id>")
@access.only_for("read")
def effect(kind: str, effect_id: int) -> str:
    """Show one effect, with the details that an operator needs to find it elsewhere."""
    return _screen(kind, effect_id, {})


@blueprint.post("/effects/<kind>/<int:effect_id>/resolve")
@access.only_for("operate")
def resolve(kind: str, effect_id: int) -> flask.typing.ResponseReturnValue:
    """Record what an operator found out, or correct it."""
    sent: dict[str, Any] = {"reference": forms.text("reference")}
    if (happened := HAPPENED.get(flask.request.form.get("happened", ""))) is not None:
        sent["happened"] = happened
    values, wrong = forms.loaded(ResolveSchema(), sent)
    if happened is None:
        wrong["happened"] = "say whether it happened"
    operator, unusable = forms.with_reason()
    if wrong or unusable:
        return _screen(kind, effect_id, {**wrong, **unusable}), 422
    with transaction() as connection:
        must_be_allowed_to_resolve(connection, kind, effect_id)
        effects.resolve(connection, kind, effect_id, values["happened"], operator, values["reference"])
    return flask.redirect(flask.url_for("page.effect", kind=kind, effect_id=effect_id, done="resolve"), 303)


def _screen(kind: str, effect_id: int, wrong: dict[str, str]) -> str:
    row = at_once(effects.show_effect, kind, effect_id)
    return flask.render_template(
        "rowcall_page/effect.html",
        room="page.effects",
        row=row,
        about=part(_about, row),
        wrong=wrong,
        sent=flask.request.form,
    )


def _about(connection: Connection, row: Row) -> dict[str, Any]:
    """Return whether an operator may resolve an effect now, and the status of its run."""
    try:
        run: Row | None = queue.get_run(connection, row["run_id"])
    except RunNotFound:
        run = None
    status = GONE if run is None or run["pruned_at"] else str(run["status"])
    return {"resolvable": may_resolve(run) and effects.resolvable(connection, row), "run_status": status}


def _kinds(connection: Connection) -> list[str]:
    return sorted({*effects.KINDS, *declared_kinds(connection)})
