"""The HTTP API: each operation with its parameters, its body and its responses, from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rowcall_api.app import create_app
from tests.reference.markdown import head, table

# What any request with a key may get.
ALWAYS = ("401", "403", "406", "413", "422", "429", "503")

METHODS = ("get", "post", "put", "patch", "delete")
Schema = Mapping[str, Any]


def page(url: str) -> str:
    """Return docs/reference/http.md."""
    document = create_app(url).test_client().get("/openapi.json").get_json()
    lines = head("HTTP operations", "`/openapi.json`, which every server serves")
    lines += [*document["info"]["description"].splitlines(), ""]
    first = document["paths"]["/v1/runs"]["get"]["responses"]
    rows = ((status, resolved(document, first[status])["description"]) for status in ALWAYS)
    lines += ["Any request can get these responses:", "", *table(("status", "response"), rows)]
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                lines += operation(document, f"{method.upper()} {path}", operations[method])
    return "\n".join(lines).rstrip() + "\n"


def operation(document: Schema, title: str, described: Schema) -> list[str]:
    """Return the section of one operation."""
    lines = [f"## {title}", "", described["summary"], ""]
    if "description" in described:
        lines += [described["description"].strip(), ""]
    parameters = [resolved(document, one) for one in described.get("parameters", ())]
    if parameters:
        rows = ((f"`{one['name']}`", one["in"], form(document, one["schema"]), meaning(one)) for one in parameters)
        lines += table(("parameter", "in", "type", "meaning"), rows)
    for content in described.get("requestBody", {}).get("content", {}).values():
        body = ((f"`{name}`", form(document, one), meaning(one)) for name, one in fields(document, content["schema"]))
        lines += table(("field of the body", "type", "meaning"), body)
    own = {status: one for status, one in described["responses"].items() if status not in ALWAYS}
    responses = ((status, resolved(document, one)["description"]) for status, one in own.items())
    return [*lines, *table(("status", "response"), responses)]


def resolved(document: Schema, part: Schema) -> Schema:
    """Follow a reference within the document."""
    if "$ref" not in part:
        return part
    found: Any = document
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return resolved(document, found)


def fields(document: Schema, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the fields of an object, the required ones first."""
    known = resolved(document, schema)
    required = known.get("required", ())
    for name, one in sorted(known.get("properties", {}).items(), key=lambda item: item[0] not in required):
        shown = {**resolved(document, one), **one, "required": name in required}
        if not shown.get("readOnly"):
            yield name, shown


def form(document: Schema, schema: Schema) -> str:
    """Return the type of a value, with its values or bounds."""
    known = resolved(document, schema)
    if "enum" in known:
        return ", ".join(f"`{value}`" for value in known["enum"] if value is not None)
    types = known.get("type", "any")
    words = " or ".join(types) if isinstance(types, list) else types
    if "items" in known:
        words = f"array of {form(document, known['items'])}{', or null' if 'null' in types else ''}"
    if "format" in known:
        words += f" ({known['format']})"
    return str(words)


def meaning(described: Schema) -> str:
    """Return the description; if the value is required, it begins with "required"."""
    text = described.get("description") or described.get("schema", {}).get("description", "")
    return f"required. {text}".strip() if described.get("required") else text
