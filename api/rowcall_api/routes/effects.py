"""/v1/effects: the external side effects of runs, and how operators resolve unknown ones."""

from __future__ import annotations

from typing import Any

from rowcall import effects
from rowcall.base.database import Row
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_resolve, shown
from rowcall_api.schemas.effects import (
    DetailedEffectSchema,
    EffectListSchema,
    EffectsQuery,
    PartialEffectSchema,
    ResolveSchema,
)
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint(
    "effects",
    __name__,
    url_prefix="/v1/effects",
    description="The external side effects of runs: emails, payments, webhooks, files, and kinds that the app"
    " declares.",
)


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(EffectsQuery, location="query")
@blueprint.response(200, EffectListSchema)
@needs("read")
def list_effects(query: dict[str, Any]) -> dict[str, Any]:
    """List effects, the newest first.

    `state=unknown` lists those that an operator must resolve.
    """
    with transaction() as connection:
        page = effects.page_of_effects(
            connection,
            query["kind"],
            query["state"],
            query["limit"],
            run_id=query["run_id"],
            cursor=query["cursor"],
            order=query["order"],
        )
    return {"items": page.effects, "next": page.next}


@blueprint.get("/<string:kind>/<int:effect_id>")
@blueprint.response(200, DetailedEffectSchema)
@needs("read")
def show_effect(kind: str, effect_id: int) -> Row:
    """Show one effect, with the details that an operator needs to find it in a mail log or a provider's dashboard."""
    with transaction() as connection:
        return effects.show_effect(connection, kind, effect_id)


@blueprint.post("/<string:kind>/<int:effect_id>/resolve")
@blueprint.arguments(ResolveSchema)
@blueprint.response(200, PartialEffectSchema)
@needs("operate")
def resolve_effect(answer: dict[str, Any], kind: str, effect_id: int) -> Row:
    """Record whether an unknown effect happened.

    Check with the provider first. If the effect did not happen, the next attempt of its run performs it; if the run is
    dead, retry it. A refused effect can be recorded as happened, and a wrong resolution or reference can be corrected
    until an attempt begins the effect again.
    """
    with transaction() as connection:
        must_be_allowed_to_resolve(connection, kind, effect_id)
        effect = effects.resolve(connection, kind, effect_id, answer["happened"], operator(), answer["reference"])
    return shown(effect, PartialEffectSchema)
