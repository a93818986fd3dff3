"""The list of runs: its filters are in the address, as in GET /v1/runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import flask

from rowcall import definitions, queue
from rowcall.access.page_views import list_views, remove_view, save_view
from rowcall.base.database import Connection, Row
from rowcall.base.errors import FilterInvalid, SearchTooSlow, TooManySearches
from rowcall.job_types import catalogue
from rowcall.queue import Page
from rowcall.queue.failures.recent import recent_error_types
from rowcall.queue.operations import Action
from rowcall.queue.queues import list_queues
from rowcall.status import Status
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access, forms
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.filters import Asked, asked
from rowcall_api.page.reading import Part, part, seconds_left
from rowcall_api.rights import may_change_many, may_keep_views, must_be_allowed_to_keep_views
from rowcall_api.standby.requests import standby_may_answer

Found = TypeVar("Found")

SHOWN_MOST = 50

# The filters that are always shown; the others are collapsed.
FIRST = ("status", "job_type", "queue", "error_type", "created_after")

# Path of the preview -> the action; rescheduling needs a time, so only the command line and the API offer it.
ACTIONS = {"retry": Action.RETRY, "cancel": Action.CANCEL, "run_now": Action.RUN_NOW}


@dataclass(frozen=True)
class Suggestions:
    """Names that the fields propose while the operator types."""

    queues: list[str]
    error_types: list[str]
    definitions: list[str]


@blueprint.get("/runs")
@standby_may_answer
@access.only_for("read")
def runs() -> flask.typing.ResponseReturnValue:
    """Show the runs that match."""
    request = asked()
    wrong, page = dict(request.wrong), None
    if not wrong:
        try:
            page = _searched(_page, request)
        except FilterInvalid as error:  # the cursor belongs to another filter
            wrong = {name: forms.in_a_sentence(why) for name, why in error.fields.items()}
    screen = flask.render_template(
        "rowcall_page/runs.html",
        asked=request,
        sent=request.sent,
        wrong=wrong,
        page=page,
        count=_searched(_counted, request) if page and flask.request.args.get("count") == "yes" else None,
        more=any(name not in FIRST for name in {*request.fixed, *wrong} - {"cursor", "order"}),
        actions=_actions(request) if page else [],
        statuses=list(Status),
        job_types=sorted(catalogue()),
        suggestions=part(_suggestions),
        views=part(list_views),
        may_keep_views=access.may_change() and may_keep_views(),
        query=request.query,
    )
    return screen, 422 if wrong else 200


@blueprint.post("/runs/views")
@access.only_for("operate")
def keep_view() -> flask.typing.ResponseReturnValue:
    """Save the filters of this address under a name."""
    must_be_allowed_to_keep_views()
    request = asked()
    if request.wrong:
        raise FilterInvalid(request.wrong)
    with transaction() as connection:
        save_view(connection, flask.request.form.get("name", "").strip(), request.query, operator())
    return flask.redirect(f"{flask.url_for('page.runs')}?{request.query}&done=view", 303)


@blueprint.post("/runs/views/remove")
@access.only_for("operate")
def drop_view() -> flask.typing.ResponseReturnValue:
    """Remove a view; the runs that it lists stay as they are."""
    must_be_allowed_to_keep_views()
    with transaction() as connection:
        remove_view(connection, flask.request.form.get("name", ""), operator())
    return flask.redirect(flask.url_for("page.runs", done="view-removed"), 303)


def _searched(read: Callable[[Connection, Asked], Found], request: Asked) -> Part[Found]:
    """Read a part that searches runs; if the search is refused or too slow, the screen says so in place of the part."""
    try:
        return part(read, request)
    except (SearchTooSlow, TooManySearches) as error:
        return Part(None, str(error))


def _page(connection: Connection, request: Asked) -> Page:
    queue.limit_searches(connection, request.criteria, flask.g.caller.key_id)
    return queue.list_runs(
        connection, request.criteria, SHOWN_MOST, request.cursor, order=request.order, seconds=seconds_left()
    )


def _counted(connection: Connection, request: Asked) -> Row:
    queue.limit_searches(connection, request.criteria, flask.g.caller.key_id)
    return queue.count_runs(connection, request.criteria, seconds=seconds_left())


def _actions(request: Asked) -> list[str]:
    """Return the actions that are possible for some runs of this filter, if the operator may change those runs."""
    given: dict[str, Any] = {name: getattr(request.criteria, name) for name in request.fixed}
    if not given or not access.may_change() or not may_change_many(given):
        return []
    chosen = {*(request.criteria.status or Status)}
    return [word for word, action in ACTIONS.items() if chosen & {*action.statuses}]


def _suggestions(connection: Connection) -> Suggestions:
    types = catalogue()
    named = {*types.queues, *(row["name"] for row in list_queues(connection, types.limits))}
    rows, _ = definitions.definitions_page(connection, 0)
    return Suggestions(sorted(named), recent_error_types(connection), [row["name"] for row in rows])
