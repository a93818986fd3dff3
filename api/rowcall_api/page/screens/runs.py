"""The list of runs: its filters are in the address, as in GET /v1/runs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import flask
import marshmallow

from rowcall import queue
from rowcall.base.database import Connection
from rowcall.base.errors import FilterInvalid
from rowcall.job_types import catalogue
from rowcall.queue import Filter, Page
from rowcall.queue.queues import list_queues
from rowcall.queue.views.pages import Order
from rowcall.status import Status
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import part
from rowcall_api.schemas.filters import RunsQuery

FILTERS = tuple(spec.name for spec in fields(Filter))

# What else the address may have, besides the filters.
BESIDES = ("cursor", "order")


@blueprint.get("/runs")
@access.only_for("read")
def runs() -> str:
    """Show the runs that match."""
    sent = asked()
    wrong: dict[str, str] = {}
    page = None
    try:
        criteria, cursor, order = read(sent)
        page = part(_page, criteria, cursor, order)
    except (marshmallow.ValidationError, FilterInvalid) as error:
        wrong = messages(error)
    return flask.render_template(
        "rowcall_page/runs.html",
        sent=sent,
        wrong=wrong,
        page=page,
        filtered={name: value for name, value in sent.items() if name in FILTERS},
        statuses=list(Status),
        job_types=sorted(catalogue()),
        queues=part(_queue_names),
    )


def asked() -> dict[str, Any]:
    """Return the filters of the address, without the empty fields of a form."""
    args = flask.request.args
    sent: dict[str, Any] = {
        name: value.strip() for name in (*FILTERS, *BESIDES) if (value := args.get(name, "")).strip()
    }
    statuses = [status for text in args.getlist("status") for status in text.split(",") if status]
    return {**sent, "status": statuses} if statuses else sent


def read(sent: dict[str, Any]) -> tuple[Filter, str | None, Order]:
    """Return the filter, the cursor and the order; raise ValidationError or FilterInvalid."""
    query = RunsQuery().load({**sent, "status": ",".join(sent["status"])} if "status" in sent else sent)
    criteria = Filter(**{name: query[name] for name in FILTERS if name in query})
    return criteria, query["cursor"], query["order"]


def messages(error: marshmallow.ValidationError | FilterInvalid) -> dict[str, str]:
    """Return what is wrong with each field."""
    if isinstance(error, FilterInvalid):
        return {name: str(why) for name, why in error.fields.items()}
    told: dict[str, list[object]] = error.normalized_messages()  # type: ignore[no-untyped-call]
    return {name: " ".join(map(str, why)) for name, why in told.items()}


def _page(connection: Connection, criteria: Filter, cursor: str | None, order: Order) -> Page:
    queue.limit_searches(connection, criteria, flask.g.caller.key_id)
    return queue.list_runs(connection, criteria, 50, cursor, order=order)


def _queue_names(connection: Connection) -> list[str]:
    return sorted({*catalogue().queues, *(row["name"] for row in list_queues(connection, catalogue().limits))})
