"""Effects: what was mailed, charged or delivered, and the buttons that resolve an unknown outcome."""

from __future__ import annotations

import flask

from rowcall import effects
from rowcall.base.errors import RunInvalid
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import must_be_allowed_to_resolve


@blueprint.get("/effects", endpoint="effects")
@access.only_for("read")
def show_all() -> str:
    """Show the newest effects, of one kind or all, in one state or any."""
    args = flask.request.args
    kind, state, cursor = args.get("kind") or None, args.get("state") or None, args.get("cursor") or None
    page = part(effects.page_of_effects, kind, [state] if state in effects.STATES else [], cursor=cursor)
    return flask.render_template(
        "rowcall_page/effects.html",
        page=page,
        kind=kind,
        state=state,
        kinds=sorted(effects.KINDS),
        states=list(effects.STATES),
    )


@blueprint.get("/effects/<kind>/<int:effect_id>")
@access.only_for("read")
def effect(kind: str, effect_id: int) -> str:
    """Show one effect, with the details by which an operator finds it elsewhere."""
    row = at_once(effects.show_effect, kind, effect_id)
    return flask.render_template("rowcall_page/effect.html", room="page.effects", row=row)


@blueprint.post("/effects/<kind>/<int:effect_id>/resolve")
@access.only_for("operate")
def resolve(kind: str, effect_id: int) -> flask.typing.ResponseReturnValue:
    """Record what an operator found out."""
    form = flask.request.form
    happened = {"yes": True, "no": False}.get(form.get("happened", ""))
    if happened is None:
        raise RunInvalid({"happened": "say whether the effect happened"})
    with transaction() as connection:
        must_be_allowed_to_resolve(connection, kind, effect_id)
        effects.resolve(connection, kind, effect_id, happened, operator(), form.get("reference", "").strip() or None)
    return flask.redirect(flask.url_for("page.effect", kind=kind, effect_id=effect_id, done="resolve"), 303)
