"""`rowcall types`: what can be enqueued, and what its payload needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from marshmallow import fields

from rowcall.cli.terminal.output import show_json
from rowcall.cli.terminal.table import Table, table_options
from rowcall.job_types import JobType, catalogue

LISTED = ("job_type", "payload", "queue", "handover", "max_attempts")
# Kind of field -> the word for it, where marshmallow's own word does not say what to write.
JSON_WORDS: dict[type, str] = {
    fields.Nested: "object",
    fields.Mapping: "object",
    fields.List: "array",
    fields.Tuple: "array",
    fields.Float: "number",
    fields.Decimal: "number",
    fields.Raw: "any",
}

MORE = ("natural_key", "unique", "time_limit", "isolated", "scope")


@click.command("types")
@table_options
def types_command(table: Table) -> None:
    """List the job types of ROWCALL_APP and of Rowcall itself, with the fields of their payloads."""
    known = [_described(job_type) for _, job_type in sorted(catalogue().items())]
    if table.as_json:
        show_json(known)
        return
    rows = [{name: _shown(value) for name, value in one.items()} for one in known]
    unused = set() if any(one["handover"] for one in known) else {"handover"}  # most apps hand nothing over
    table.show(rows, [name for name in LISTED if name not in unused], more=MORE)


def _described(job_type: JobType) -> dict[str, Any]:
    return {
        "job_type": job_type.name,
        "payload": [_field(name, field) for name, field in job_type.schema().load_fields.items()],
        "queue": job_type.queue,
        "max_attempts": job_type.max_attempts,
        "natural_key": job_type.key is not None,
        "unique": job_type.unique,
        "time_limit": job_type.time_limit,
        "isolated": job_type.isolated,
        "handover": None if job_type.handover is None else asdict(job_type.handover),
        "scope": job_type.scope,
    }


def _field(name: str, field: fields.Field[Any]) -> dict[str, Any]:
    return {"name": field.data_key or name, "type": _type(field), "required": field.required}


def _type(field: fields.Field[Any]) -> str:
    """Return what to write for this field: JSON's word for it, or marshmallow's, such as date or email."""
    kinds = type(field).__mro__
    return next((word for kind, word in JSON_WORDS.items() if kind in kinds), None) or next(
        kind.__name__.lower() for kind in kinds if kind.__module__ == fields.__name__
    )


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_words(field) for field in value]
    if isinstance(value, dict):
        # The queue first, because a narrow terminal cuts the rest.
        return f"queue {value['queue']}, task {value['task']}, wait {value['wait']:g} s"
    return ("no", "yes")[value] if isinstance(value, bool) else value


def _in_words(field: dict[str, Any]) -> str:
    """Describe the field, such as "user_id integer", or "[note string]" if it is optional."""
    words = f"{field['name']} {field['type']}"
    return words if field["required"] else f"[{words}]"
