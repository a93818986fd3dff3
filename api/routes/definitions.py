"""/v1/definitions: what should exist, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flask

from api.auth import needs
from api.body import BodyBlueprint
from api.database import transaction
from api.schemas.definitions import (
    DefinitionSchema,
    EnqueuedSchema,
    LimitQuery,
    OccurrenceSchema,
    PreviewQuery,
    ShownSchema,
)
from shared import definitions
from shared.audit import Admin
from shared.database import Row
from shared.definitions import Change, Content, ContentSchema, preview
from shared.errors import ScheduleInvalid
from shared.job_types import catalogue
from shared.queue import Enqueued
from shared.schedule import moment

blueprint = BodyBlueprint(
    "definitions", __name__, url_prefix="/v1/definitions", description="What should exist: job types and their times."
)


@blueprint.get("")
@blueprint.response(200, DefinitionSchema(many=True))
@needs("read")
def list_definitions() -> list[dict[str, Any]]:
    """All definitions, by name."""
    with transaction() as connection:
        return [_told(row) for row in definitions.list_definitions(connection)]


@blueprint.get("/<name>")
@blueprint.response(200, DefinitionSchema)
@needs("read")
def show_definition(name: str) -> dict[str, Any]:
    """One definition."""
    with transaction() as connection:
        return _told(definitions.get_definition(connection, name))


@blueprint.put("/<name>")
@blueprint.arguments(ContentSchema)
@blueprint.response(200, DefinitionSchema)
@blueprint.alt_response(201, schema=DefinitionSchema, description="There was none of this name.")
@needs("operate")
def put_definition(wanted: dict[str, Any], name: str) -> tuple[dict[str, Any], int]:
    """Make this definition exist with this content.  A change begins a new revision from now."""
    content = definitions.accepted(name, wanted, catalogue())
    with transaction() as connection:
        done = definitions.put(connection, name, content, catalogue(), "api", _admin())
    return _told(done.row), 201 if done.change is Change.CREATED else 200


@blueprint.delete("/<name>")
@blueprint.response(204)
@needs("operate")
def remove_definition(name: str) -> None:
    """Let it exist no more; its runs stay."""
    with transaction() as connection:
        definitions.remove(connection, name, _admin())


@blueprint.post("/<name>/pause")
@blueprint.response(200, DefinitionSchema)
@needs("operate")
def pause_definition(name: str) -> dict[str, Any]:
    """Enqueue nothing more for it; its nominal times are written down as skipped."""
    with transaction() as connection:
        return _told(definitions.pause(connection, name, catalogue(), _admin()))


@blueprint.post("/<name>/resume")
@blueprint.response(200, DefinitionSchema)
@needs("operate")
def resume_definition(name: str) -> dict[str, Any]:
    """Enqueue for it again, from now."""
    with transaction() as connection:
        return _told(definitions.resume(connection, name, catalogue(), _admin()))


@blueprint.post("/<name>/run-now")
@blueprint.response(202, EnqueuedSchema)
@blueprint.alt_response(200, schema=EnqueuedSchema, description="Its key had a run already.")
@needs("operate")
def run_definition_now(name: str) -> tuple[Enqueued, int, dict[str, str]]:
    """Enqueue one run beside the schedule."""
    with transaction() as connection:
        outcome = definitions.run_now(connection, name, catalogue(), _admin())
    return outcome, 200 if outcome.replayed else 202, {"Location": f"/v1/runs/{outcome.run_id}"}


@blueprint.get("/<name>/occurrences")
@blueprint.arguments(LimitQuery, location="query")
@blueprint.response(200, OccurrenceSchema(many=True))
@needs("read")
def list_occurrences(query: Mapping[str, Any], name: str) -> list[Row]:
    """Its latest nominal times, and what became of each."""
    with transaction() as connection:
        row = definitions.get_definition(connection, name)
        return definitions.occurrences_of(connection, row["id"], query["limit"])


@blueprint.get("/<name>/preview")
@blueprint.arguments(PreviewQuery, location="query")
@blueprint.response(200, ShownSchema(many=True))
@needs("read")
def preview_definition(query: Mapping[str, Any], name: str) -> list[preview.Shown]:
    """Its next nominal times; up to `until`; or as if nothing was awake up to `asleep`."""
    with transaction() as connection:
        content = Content.of(definitions.get_definition(connection, name))
        now = definitions.clock(connection)
    told = {field: moment(query[field], now, content.zone) for field in ("start", "until", "asleep") if query[field]}
    end = told.get("until") or told.get("asleep")
    if end is None:
        return preview.coming(name, content, told["start"], query["count"])
    if end <= told["start"]:
        raise ScheduleInvalid("until", f"the end, {end.isoformat()}, is not after {told['start'].isoformat()}")
    shown = preview.between if "until" in told else preview.through_outage
    return shown([(name, content)], told["start"], end)


def _admin() -> Admin:
    return Admin(f"api:{flask.g.caller.name}", flask.g.get("request_id"))


def _told(row: Row) -> dict[str, Any]:
    return {**row, **vars(Content.of(row))}
