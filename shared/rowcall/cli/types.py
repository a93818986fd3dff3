"""`rowcall types`: what can be enqueued, and what its payload needs."""

from __future__ import annotations

from typing import Any

import click
from marshmallow.fields import Field

from rowcall.cli.terminal.output import show_json
from rowcall.cli.terminal.table import Table, table_options
from rowcall.job_types import JobType, catalogue

LISTED = ("job_type", "payload", "queue", "max_attempts")
MORE = ("natural_key", "unique", "time_limit", "isolated", "scope")


@click.command("types")
@table_options
def types_command(table: Table) -> None:
    """List the job types of ROWCALL_APP and of Rowcall itself, with the fields of their payloads."""
    known = [_described(job_type) for _, job_type in sorted(catalogue().items())]
    if table.as_json:
        show_json(known)
        return
    rows = [{**one, "payload": [_in_words(field) for field in one["payload"]]} for one in known]
    table.show(rows, LISTED, more=MORE)


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
        "scope": job_type.scope,
    }


def _field(name: str, field: Field[Any]) -> dict[str, Any]:
    return {"name": field.data_key or name, "type": type(field).__name__.lower(), "required": field.required}


def _in_words(field: dict[str, Any]) -> str:
    """Such as "user_id integer", or "[note string]" for one that may be left out."""
    words = f"{field['name']} {field['type']}"
    return words if field["required"] else f"[{words}]"
