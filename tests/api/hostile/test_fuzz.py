"""Any value for any parameter of any route in /openapi.json gets a response, and a refusal changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import hypothesis
from hypothesis import strategies as st

from tests.api.conftest import PROBLEM, Call, There, told
from tests.support.digest import Digest

# Each route gets one in this many of the profile's examples.
SHARE = 5

# Surrogate halves and the null character are what databases cannot store.
TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(
    [
        "\0",
        "\ud800",
        "",
        " ",
        "null",
        "0",
        "-1",
        "1e999",
        "NaN",
        "infinity",
        "now",
        "9" * 40,
        "2030-01-01T00:00:00Z",
        "%",
    ]
)

NUMBERS = st.integers() | st.floats() | st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30])

VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@dataclass(frozen=True)
class Operation:
    """A route and its parameters: in the path, query and headers, and the fields of its body."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    usual: dict[str, Any] = field(default_factory=dict)


def operations(described: dict[str, Any]) -> Iterator[Operation]:
    """Yield every operation of the API."""
    for path, item in described["paths"].items():
        for method in sorted(item.keys() & {"get", "put", "post", "delete"}):
            parameters = [*item.get("parameters", ()), *item[method].get("parameters", ())]
            names = {place: tuple(one["name"] for one in parameters if one["in"] == place) for place in PLACES}
            fields = properties(described, item[method])
            usual = {name: USUAL[name] for name in fields if name in USUAL}
            yield Operation(method.upper(), path, names["query"], names["header"], tuple(fields), usual)


PLACES = ("path", "query", "header")

# If the other fields are valid, an invalid one gets further.
USUAL = {
    "job_type": "noop",
    "payload": {},
    "schedule": "@daily",
    "day": "2026-03-23",
    "user_id": 1,
    "date_range": {"from": "2026-03-23", "to": "2026-03-29"},
    "happened": True,
    "name": "nightly",
    "scopes": ["read"],
    "max_running": 1,
}


def properties(described: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """Return the fields of an operation's body."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    return list((described["components"]["schemas"][name] if name else schema).get("properties", ()))


@st.composite
def requests(draw: st.DrawFn, operation: Operation, there: There) -> dict[str, Any]:
    """Draw a request to this operation, with unexpected values for any of its parameters."""

    def part(found: re.Match[str]) -> str:
        return quote(draw(st.just(str(there.parts[found[1]])) | TEXTS.filter(bool)), safe="", errors="surrogatepass")

    def some(names: tuple[str, ...], values: st.SearchStrategy[Any]) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        return {name: draw(values) for name in chosen}

    sent: dict[str, Any] = {
        "path": re.sub(r"{(\w+)}", part, operation.path),
        "query_string": urlencode(some(operation.query, TEXTS), errors="surrogatepass"),
        "headers": {name: header(value) for name, value in some(operation.headers, TEXTS).items()},
    }
    if operation.fields:
        body = {**operation.usual, **some((*operation.fields, "unheard_of"), VALUES)}
        sent |= {"data": json.dumps(draw(st.just(body) | VALUES)), "content_type": "application/json"}
    return sent


def header(value: str) -> str:
    """Return the text in a form that a header can carry."""
    return re.sub(r"[\r\n]", "", value).encode("utf-8", "replace").decode("latin-1")


def test_any_value_of_any_parameter_is_answered_and_changes_nothing_where_it_is_refused(
    call: Call, digest: Digest, there: There
) -> None:
    seen: set[int] = set()
    # Deletes come last.
    for operation in sorted(operations(told(call("GET", "/openapi.json"))), key=lambda one: one.method == "DELETE"):
        tries(operation, call, digest, there, seen)
    assert {200, 202, 404, 422} <= seen


def tries(operation: Operation, call: Call, digest: Digest, there: There, seen: set[int]) -> None:
    """Send many requests to one operation."""

    @hypothesis.settings(max_examples=hypothesis.settings().max_examples // SHARE)
    @hypothesis.given(sent=requests(operation, there))
    def asked(sent: dict[str, Any]) -> None:
        before = digest()
        answer = call(operation.method, **sent)
        seen.add(answer.status_code)
        assert answer.status_code < 500, answer.get_data(as_text=True)
        if answer.status_code >= 400:
            assert answer.mimetype == PROBLEM
            assert digest() == before

    asked()
