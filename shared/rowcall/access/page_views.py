"""Views that operators have saved: named filters.  All operators share them, so each change is audited."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, Row, fetch_all, fetch_one, fetch_value
from rowcall.base.errors import FilterInvalid
from rowcall.base.redaction import storable

# More views would be a list to search, not one to choose from.
VIEWS_MOST = 50

NAME_CHARACTERS, QUERY_CHARACTERS = 60, 4000

# Values of these filters may be about a person, and rows of the audit log are never deleted.
PERSONAL = {"payload", "key"}
LEFT_OUT = "..."

LIST = f"SELECT name, query, created_by, created_at FROM rowcall.page_views ORDER BY name LIMIT {VIEWS_MOST}"

COUNT = "SELECT count(*) FROM rowcall.page_views WHERE name <> %(name)s"

GET = "SELECT name, query, created_by FROM rowcall.page_views WHERE name = %(name)s FOR UPDATE"

# Saving under a name that exists replaces that view.
SAVE = """
INSERT INTO rowcall.page_views (name, query, created_by) VALUES (%(name)s, %(query)s, %(who)s)
ON CONFLICT (name) DO UPDATE SET query = excluded.query, created_by = excluded.created_by, created_at = now()
RETURNING name, query, created_by
"""

REMOVE = "DELETE FROM rowcall.page_views WHERE name = %(name)s RETURNING name, query, created_by"


def list_views(connection: Connection) -> list[Row]:
    """Return the views by name."""
    return fetch_all(connection, LIST)


def save_view(connection: Connection, name: str, query: str, operator: Operator) -> None:
    """Save the filters of a list of runs under a name; raise FilterInvalid if that is not possible."""
    if wrong := _wrong_with(name, query):
        raise FilterInvalid(wrong)
    others: int = fetch_value(connection, COUNT, {"name": name})
    if others >= VIEWS_MOST:
        raise FilterInvalid({"name": f"there are {VIEWS_MOST} views already: remove one first"})
    before = fetch_one(connection, GET, {"name": name})
    after = fetch_one(connection, SAVE, {"name": name, "query": query, "who": operator.who})
    record(connection, operator.who, "save", "view", None, _noted(before), _noted(after), operator.request_id)


def remove_view(connection: Connection, name: str, operator: Operator) -> None:
    """Remove the view with this name, if there is one."""
    before = fetch_one(connection, REMOVE, {"name": storable(name)})
    if before is not None:
        record(connection, operator.who, "remove", "view", None, _noted(before), None, operator.request_id)


def _noted(view: Row | None) -> Row | None:
    """Return what the audit log keeps of a view."""
    if view is None:
        return None
    filters = [(name, LEFT_OUT if name in PERSONAL else value) for name, value in parse_qsl(view["query"])]
    return {**view, "query": urlencode(filters)}


def _wrong_with(name: str, query: str) -> dict[str, str]:
    """Return what is wrong with each value."""
    wrong = {}
    if not 1 <= len(name) <= NAME_CHARACTERS or not name.isprintable():
        wrong["name"] = f"must be printable text of 1 to {NAME_CHARACTERS} characters"
    if not 1 <= len(query) <= QUERY_CHARACTERS:
        wrong["filter"] = f"must have 1 to {QUERY_CHARACTERS} characters in the address"
    return wrong
