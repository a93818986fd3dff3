"""What /openapi.json says about answers of the standby."""

from __future__ import annotations

from typing import Any

from rowcall_api.standby.requests import AGE, MARK, POSITION, READS

ONLY_WITH_STANDBY = "Only sent if the API reads from a standby"

STANDBY_HEADERS: dict[str, dict[str, Any]] = {
    AGE: {
        "description": f"How old the answer is, at most, in seconds. {ONLY_WITH_STANDBY} and the standby has answered.",
        "schema": {"type": "number", "minimum": 0},
    },
    POSITION: {
        "description": f"Send this header with a later request for a list, and the list includes this write."
        f" {ONLY_WITH_STANDBY}.",
        "schema": {"type": "string"},
    },
}

PARAMETER = {
    "name": POSITION,
    "in": "header",
    "description": "The header of an earlier response: the list then includes what that request wrote. To read the"
    " present in any case, send `Cache-Control: no-cache`.",
    "schema": {"type": "string"},
}

MAY_BE_OLD = "If the API reads from a standby, the answer may be some seconds old; `Rowcall-Age` says how old."


def describe(view: object, method: str, doc: dict[str, Any]) -> None:
    """Complete the description of an operation that the standby may answer, or after which a caller may ask it."""
    if getattr(view, MARK, False):
        doc["description"] = "\n\n".join(filter(None, (doc.get("description"), MAY_BE_OLD)))
        doc["parameters"] = [*doc.get("parameters", ()), PARAMETER]
        _add_header(doc, AGE)
    elif method.upper() not in READS:
        _add_header(doc, POSITION)


def _add_header(doc: dict[str, Any], name: str) -> None:
    for status, answer in doc.get("responses", {}).items():
        if isinstance(answer, dict) and str(status).startswith("2"):
            answer["headers"] = {**answer.get("headers", {}), name: name}
