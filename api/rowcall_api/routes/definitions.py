"""/v1/definitions: what should exist, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rowcall import definitions
from rowcall.base.database import Row
from rowcall.base.errors import DefinitionInvalid, ScheduleInvalid
from rowcall.definitions import Change, Content, preview
from rowcall.job_types import catalogue
from rowcall.queue import Enqueued
from rowcall.schedule import moment
from rowcall_api.http.auth import needs, operator
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.definitions import (
    DefinitionListSchema,
    DefinitionSchema,
    EnqueuedSchema,
    OccurrenceListSchema,
    OccurrencesQuery,
    PreviewQuery,
    PreviewSchema,
    WantedDefinitionSchema,
)
from rowcall_api.schemas.runs import EnqueueHeaders

MOMENTS = ("from", "until", "asleep")

blueprint = BodyBlueprint(
    "definitions", __name__, url_prefix="/v1/definitions", description="What should exist: job types and their times."
)


@blueprint.get("")
@blueprint.response(200, DefinitionListSchema)
@needs("read")
def list_definitions() -> dict[str, Any]:
    """All definitions, by name, in one page: they are as many as a team writes down."""
    with transaction() as connection:
        return {"items": [_told(row) for row in definitions.list_definitions(connection)], "next": None}


@blueprint.get("/<name>")
@blueprint.response(200, DefinitionSchema)
@needs("read")
def show_definition(name: str) -> dict[str, Any]:
    """One definition."""
    with transaction() as connection:
        return _told(definitions.get_definition(connection, name))


@blueprint.put("/<name>")
@blueprint.arguments(WantedDefinitionSchema)
@blueprint.response(200, DefinitionSchema)
@blueprint.alt_response(
    201, schema=DefinitionSchema, description="There was none of this name.", headers={"Location": "Location"}
)
@needs("operate")
def put_definition(wanted: dict[str, Any], name: str) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Make this definition exist with this content.  A change begins a new revision from now.

    What GET answers can be sent back: the fields that only tell how it is now are ignored.
    """
    if wanted.pop("name", name) != name:
        raise DefinitionInvalid(name, {"name": "the body names another definition than the URL"})
    content = definitions.checked(name, wanted, catalogue())
    with transaction() as connection:
        done = definitions.put(connection, name, content, catalogue(), "api", operator())
    if done.change is Change.CREATED:
        return _told(done.row), 201, {"Location": f"/v1/definitions/{name}"}
    return _told(done.row), 200, {}


@blueprint.delete("/<name>")
@blueprint.response(204)
@needs("operate")
def remove_definition(name: str) -> None:
    """Let it exist no more; its runs stay."""
    with transaction() as connection:
        definitions.remove(connection, name, operator())


@blueprint.post("/<name>/pause")
@blueprint.response(200, DefinitionSchema)
@needs("operate")
def pause_definition(name: str) -> dict[str, Any]:
    """Enqueue nothing more for it; its nominal times are written down as skipped."""
    with transaction() as connection:
        return _told(definitions.pause(connection, name, catalogue(), operator()))


@blueprint.post("/<name>/resume")
@blueprint.response(200, DefinitionSchema)
@needs("operate")
def resume_definition(name: str) -> dict[str, Any]:
    """Enqueue for it again, from now."""
    with transaction() as connection:
        return _told(definitions.resume(connection, name, catalogue(), operator()))


@blueprint.post("/<name>/run-now")
@blueprint.arguments(EnqueueHeaders, location="headers")
@blueprint.response(202, EnqueuedSchema, headers={"Location": "Location"})
@blueprint.alt_response(
    200,
    schema=EnqueuedSchema,
    description="Its key had a run already.",
    headers={"Location": "Location", "Idempotent-Replayed": "Idempotent-Replayed"},
)
@needs("operate")
def run_definition_now(headers: dict[str, Any], name: str) -> tuple[Enqueued, int, dict[str, str]]:
    """Enqueue one run beside the schedule."""
    with transaction() as connection:
        outcome = definitions.run_now(connection, name, catalogue(), operator(), headers["idempotency_key"])
    found = {"Location": f"/v1/runs/{outcome.run_id}"}
    if outcome.replayed:
        return outcome, 200, {**found, "Idempotent-Replayed": "true"}
    return outcome, 202, found


@blueprint.get("/<name>/occurrences")
@blueprint.arguments(OccurrencesQuery, location="query")
@blueprint.response(200, OccurrenceListSchema)
@needs("read")
def list_occurrences(query: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Its nominal times, the latest first, and what became of each."""
    with transaction() as connection:
        row = definitions.get_definition(connection, name)
        found = definitions.occurrences_of(connection, row["id"], query["limit"] + 1, query["cursor"])
    items = found[: query["limit"]]
    more = len(found) > len(items)
    return {"items": items, "next": f"{items[-1]['nominal_at'].astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if more else None}


@blueprint.get("/<name>/preview")
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, PreviewSchema)
@needs("read")
def preview_definition(query: Mapping[str, Any], name: str) -> dict[str, list[preview.Shown]]:
    """Its next nominal times; up to `until`; or as if nothing was awake up to `asleep`."""
    with transaction() as connection:
        content = Content.of(definitions.get_definition(connection, name))
        now = definitions.clock(connection)
    told = {field: _moment(field, text, now, content) for field, text in query.items() if field in MOMENTS}
    if "until" not in told and "asleep" not in told:
        return {"items": preview.coming(name, content, told["from"], query["count"])}
    if "until" in told and "asleep" in told:
        raise ScheduleInvalid("asleep", "say until or asleep, not both")
    return {"items": _up_to(told, name, content)}


def _up_to(told: Mapping[str, datetime], name: str, content: Content) -> list[preview.Shown]:
    field, shown = ("until", preview.between) if "until" in told else ("asleep", preview.through_outage)
    if told[field] <= told["from"]:
        raise ScheduleInvalid(
            field, f"{field}, {told[field].isoformat()}, is not after from, {told['from'].isoformat()}"
        )
    return shown([(name, content)], told["from"], told[field])


def _moment(field: str, text: str, now: datetime, content: Content) -> datetime:
    try:
        return moment(text, now, content.zone)
    except ScheduleInvalid as error:
        raise ScheduleInvalid(field, f"{field}: {error}") from None


def _told(row: Row) -> dict[str, Any]:
    return {**row, **vars(Content.of(row))}
