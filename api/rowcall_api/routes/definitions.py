"""/v1/definitions: which job types run, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from rowcall import definitions
from rowcall.base.database import Row
from rowcall.base.errors import DefinitionInvalid, ScheduleInvalid
from rowcall.definitions import Change, Content, preview
from rowcall.job_types import catalogue
from rowcall.queue import get_run
from rowcall.queue.views import cursors
from rowcall.queue.views.pages import Order
from rowcall.schedule import moment
from rowcall_api import rights
from rowcall_api.enqueue import Answer, answer, answers_with_a_run
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.rights import must_be_allowed_to_change_definition, must_be_allowed_to_enqueue
from rowcall_api.schemas.definitions import (
    ChangeHeaders,
    DefinitionListSchema,
    DefinitionSchema,
    DefinitionsQuery,
    OccurrenceListSchema,
    OccurrencesQuery,
    PartialDefinitionSchema,
    PreviewQuery,
    PreviewSchema,
    PutHeaders,
    SentDefinitionSchema,
    condition_of,
    tagged,
)
from rowcall_api.schemas.runs import EnqueueHeaders, PartialRunSchema
from rowcall_api.standby.requests import standby_may_answer

MOMENTS = ("from", "until", "asleep")

# A definition, the HTTP status, and the headers.
Shown: TypeAlias = tuple[dict[str, Any], int, dict[str, str]]

blueprint = BodyBlueprint(
    "definitions", __name__, url_prefix="/v1/definitions", description="Which job types run, and when."
)


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(DefinitionsQuery, location="query")
@blueprint.response(200, DefinitionListSchema)
@needs("read")
def list_definitions(query: Mapping[str, Any]) -> dict[str, Any]:
    """List all definitions by name. One page is enough for most teams."""
    after_id = 0 if query["cursor"] is None else cursors.read("definitions", query["cursor"])[0]
    with transaction() as connection:
        rows, more = definitions.definitions_page(connection, after_id)
    following = cursors.written("definitions", rows[-1]["id"], 0) if more else None
    return {"items": [_with_content(row) for row in rows], "next": following}


@blueprint.get("/<name>")
@blueprint.response(200, DefinitionSchema, headers={"ETag": "ETag"})
@needs("read")
def show_definition(name: str) -> Shown:
    """Show one definition."""
    with transaction() as connection:
        return _shown(definitions.get_definition(connection, name))


@blueprint.put("/<name>")
@blueprint.arguments(SentDefinitionSchema)
@blueprint.arguments(PutHeaders, location="headers")
@blueprint.response(200, DefinitionSchema, headers={"ETag": "ETag"})
@blueprint.alt_response(
    201,
    schema=DefinitionSchema,
    description="The definition is new.",
    headers={"Location": "Location", "ETag": "ETag"},
)
@needs("operate")
def put_definition(sent: dict[str, Any], headers: dict[str, Any], name: str) -> Shown:
    """Create or change this definition.  A change starts a new revision that applies from now on.

    You can send the response of GET back: its read-only fields are ignored. Send its ETag as `If-Match` to avoid
    overwriting a concurrent change, or `If-None-Match: *` to avoid overwriting an existing definition. The key also
    needs the scope to enqueue a run of this type.
    """
    if sent.pop("name", name) != name:
        raise DefinitionInvalid(name, {"name": "differs from the name in the URL"})
    content = definitions.checked(name, sent, catalogue())
    with transaction() as connection:
        must_be_allowed_to_change_definition(connection, name)
        must_be_allowed_to_enqueue(connection, content.job_type, content.queue, content.priority)
        done = definitions.put(connection, name, content, catalogue(), "api", operator(), condition_of(headers))
    shown, status, tag = _shown(done.row)
    if done.change is Change.CREATED:
        return shown, 201, {"Location": f"/v1/definitions/{name}", **tag}
    return shown, status, tag


@blueprint.delete("/<name>")
@blueprint.arguments(ChangeHeaders, location="headers")
@blueprint.response(204)
@needs("operate")
def remove_definition(headers: dict[str, Any], name: str) -> None:
    """Remove this definition but keep its runs."""
    with transaction() as connection:
        must_be_allowed_to_change_definition(connection, name)
        definitions.remove(connection, name, operator(), condition_of(headers))


@blueprint.post("/<name>/pause")
@blueprint.arguments(ChangeHeaders, location="headers")
@blueprint.response(200, PartialDefinitionSchema, headers={"ETag": "ETag"})
@needs("operate")
def pause_definition(headers: dict[str, Any], name: str) -> Shown:
    """Pause this definition: its later nominal times are recorded as skipped."""
    with transaction() as connection:
        must_be_allowed_to_change_definition(connection, name)
        return _steered(definitions.pause(connection, name, catalogue(), operator(), condition_of(headers)))


@blueprint.post("/<name>/resume")
@blueprint.arguments(ChangeHeaders, location="headers")
@blueprint.response(200, PartialDefinitionSchema, headers={"ETag": "ETag"})
@needs("operate")
def resume_definition(headers: dict[str, Any], name: str) -> Shown:
    """Resume this definition; nominal times that passed while it was paused stay skipped."""
    with transaction() as connection:
        must_be_allowed_to_change_definition(connection, name)
        return _steered(definitions.resume(connection, name, catalogue(), operator(), condition_of(headers)))


@blueprint.post("/<name>/run-now")
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint, PartialRunSchema)
@needs("operate")
def run_definition_now(headers: dict[str, Any], name: str) -> Answer:
    """Enqueue one run of this definition now, in addition to its schedule.

    The key also needs the scope that the run's job type requires.
    """
    with transaction() as connection:
        content = Content.of(definitions.get_definition(connection, name))
        must_be_allowed_to_enqueue(connection, content.job_type, content.queue, content.priority)
        outcome = definitions.run_now(connection, name, catalogue(), operator(), headers["idempotency_key"])
        run = get_run(connection, outcome.run_id)
    return answer(run, outcome.replayed, own=False)


@blueprint.get("/<name>/occurrences")
@blueprint.arguments(OccurrencesQuery, location="query")
@blueprint.response(200, OccurrenceListSchema)
@needs("read")
def list_occurrences(query: Mapping[str, Any], name: str) -> dict[str, Any]:
    """List the nominal times of this definition and their outcomes, the latest first."""
    with transaction() as connection:
        row = definitions.get_definition(connection, name)
        order: Order = query["order"]
        scope = order.scope(f"occurrences {row['id']}")
        beyond = None if query["cursor"] is None else cursors.read_time(scope, query["cursor"])[0]
        rows = definitions.occurrences_of(connection, row["id"], query["limit"] + 1, beyond, order)
    items = rows[: query["limit"]]
    more = len(rows) > len(items)
    return {"items": items, "next": cursors.written_time(scope, items[-1]["nominal_at"]) if more else None}


@blueprint.get("/<name>/preview")
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewSchema)
@needs("read")
def preview_definition(query: Mapping[str, Any], name: str) -> dict[str, list[preview.Shown]]:
    """Show the next nominal times, or all of them up to `until`, or what an outage up to `asleep` would cause."""
    with transaction() as connection:
        row = definitions.get_definition(connection, name)
        now = definitions.clock(connection)
    return {"items": previewed(query, row, now)}


def previewed(query: Mapping[str, Any], row: Row, now: datetime) -> list[preview.Shown]:
    """Return the nominal times of a definition that a PreviewQuery asks for; raise ScheduleInvalid."""
    definition = preview.Previewed(row["name"], Content.of(row), row["paused_at"] is not None)
    times = {field: _moment(field, text, now, definition.content) for field, text in query.items() if field in MOMENTS}
    if "until" not in times and "asleep" not in times:
        return preview.coming(definition, times["from"], query["count"])
    if "until" in times and "asleep" in times:
        raise ScheduleInvalid("asleep", "send until or asleep, not both")
    return _up_to(times, definition)


def _up_to(times: Mapping[str, datetime], definition: preview.Previewed) -> list[preview.Shown]:
    field, shown = ("until", preview.between) if "until" in times else ("asleep", preview.through_outage)
    if times[field] <= times["from"]:
        raise ScheduleInvalid(
            field, f"{field} ({times[field].isoformat()}) must be later than from ({times['from'].isoformat()})"
        )
    return shown([definition], times["from"], times[field])


def _moment(field: str, text: str, now: datetime, content: Content) -> datetime:
    try:
        return moment(text, now, content.zone)
    except ScheduleInvalid as error:
        raise ScheduleInvalid(field, f"{field}: {error}") from None


def _shown(row: Row) -> Shown:
    return _with_content(row), 200, tagged(row)


def _steered(row: Row) -> Shown:
    return rights.shown(_with_content(row), PartialDefinitionSchema), 200, tagged(row)


def _with_content(row: Row) -> dict[str, Any]:
    return {**row, **vars(Content.of(row))}
