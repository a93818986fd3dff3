"""Output of commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON."
)


def show_json(value: object) -> None:
    """Print a value as JSON on one line, with times in ISO 8601."""
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False))


def show_table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str], empty: str, as_json: bool = False) -> None:
    """Print these columns of the rows as a table, or everything as JSON; print `empty` if there are no rows."""
    if as_json or not rows:
        show_json(rows) if as_json else click.echo(empty)
        return
    lines = [list(columns), *([shown(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show_fields(row: Mapping[str, Any]) -> None:
    """Print one row, with a line for each field that is not None."""
    width = max(map(len, row))
    for name, value in row.items():
        if value is not None:
            click.echo(f"{name.ljust(width)}  {shown(value)}")


def shown(value: object) -> str:
    """Format a value for people, on one line."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return str(value)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
