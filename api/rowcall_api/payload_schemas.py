"""The payloads of job types as JSON Schema, from their marshmallow schemas.

JSON Schema cannot express all rules of a declaration, such as those of a validator function: a payload that fits may
still be refused.  Nor does it know what marshmallow converts: a field that is not strict also accepts "1" for 1.
"""

from __future__ import annotations

import functools
import inspect
import json
import warnings
from collections.abc import Mapping
from typing import Any

from apispec import APISpec
from marshmallow import Schema

from rowcall.job_types import JobType
from rowcall_api.field_schemas import PayloadPlugin

DIALECT = "https://json-schema.org/draft/2020-12/schema"

COMPONENTS = "#/components/schemas/"
PAYLOAD = "payload"

# The components that enqueue a run of any type.
REQUESTS = ("Enqueue", "BatchRun")

# For a schema that cannot be converted.
ANY = {"type": "object"}


def payload_schema(job_type: JobType) -> dict[str, Any]:
    """Return the JSON Schema of this type's payload; the schemas that it nests are in `$defs`."""
    converted = _converted(job_type.schema)
    names = {name: "#" if name == PAYLOAD else f"#/$defs/{name}" for name in converted}
    nested = {name: _renamed(one, names) for name, one in converted.items() if name != PAYLOAD}
    more = {"$defs": nested} if nested else {}
    return {"$schema": DIALECT, **_renamed(converted[PAYLOAD], names), **more}


def describe_payloads(spec: APISpec, types: Mapping[str, JobType]) -> None:
    """Add the payload of each type to the components of an OpenAPI document, and name them where a run is enqueued.

    They are non-exclusive alternatives (`anyOf`), because `noop` accepts the payload of any type.  Those that accept
    any field come first: clients that openapi-python-client generates read an object as the first alternative that
    fits, and drop the fields that it does not declare.
    """
    for name, job_type in sorted(types.items()):
        converted = _converted(job_type.schema)
        names = {part: f"{COMPONENTS}{_component(name, part)}" for part in converted}
        for part, one in converted.items():
            spec.components.schema(_component(name, part), component=_renamed(one, names))
    in_order = sorted(types, key=lambda name: (not _is_open(_converted(types[name].schema)[PAYLOAD]), name))
    for request in REQUESTS:
        payload = spec.components.schemas[request]["properties"]["payload"]
        payload["anyOf"] = [{"$ref": f"{COMPONENTS}{_component(name, PAYLOAD)}"} for name in in_order]


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema accepts unknown fields and requires none."""
    return schema.get("additionalProperties") is not False and not schema.get("required")


def _component(job_type: str, part: str) -> str:
    """Return the name of a component; because of its dot, no schema of an app can have the same name."""
    return f"{PAYLOAD}.{job_type}" if part == PAYLOAD else f"{PAYLOAD}.{job_type}.{part}"


@functools.cache
def _converted(schema: type[Schema]) -> dict[str, Any]:
    """Return name -> JSON Schema: that of the marshmallow schema as PAYLOAD, and those of the schemas that it nests."""
    spec = APISpec("", "", "3.1.0", plugins=[PayloadPlugin()])
    try:
        # apispec warns about declarations that it can describe only in part.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.components.schema(PAYLOAD, schema=schema)
        converted: dict[str, Any] = json.loads(json.dumps(spec.to_dict()["components"]["schemas"]))
    except Exception:  # whatever the app's fields raise, the API must start
        return {PAYLOAD: ANY}
    if schema.__doc__:
        converted[PAYLOAD].setdefault("description", inspect.cleandoc(schema.__doc__))
    return {name: _sent(one) for name, one in converted.items()}


def _sent(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the fields that marshmallow never accepts in a request."""
    known: dict[str, Any] = schema.get("properties", {})
    properties = {name: one for name, one in known.items() if not one.get("readOnly")}
    required = [name for name in schema.get("required", ()) if name in properties]
    more = {"required": required} if required else {}
    return {**{name: one for name, one in schema.items() if name != "required"}, "properties": properties, **more}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a part of a schema with the references to these components replaced."""
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: names[one.removeprefix(COMPONENTS)] if name == "$ref" else _renamed(one, names)
        for name, one in value.items()
    }
