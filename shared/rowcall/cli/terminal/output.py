"""Output of commands: lines for people, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import click

# On a terminal that claims to be narrower, wrapping would not help.
NARROWEST = 20

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON."
)


def show_json(value: object) -> None:
    """Print a value as JSON on one line, with times in ISO 8601."""
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False))


def show_fields(row: Mapping[str, Any]) -> None:
    """Print one row, with a line for each field that is not None."""
    width = max(map(len, row))
    for name, value in row.items():
        if value is not None:
            click.echo(f"{name.ljust(width)}  {shown(value)}")


def in_foreground() -> bool:
    """Whether this process may write to its terminal at any time; a shell's `&` and `bg` say that it should not."""
    try:
        return os.tcgetpgrp(sys.stdout.fileno()) == os.getpgrp()
    except OSError:
        return True  # a terminal that no shell controls


def wrapped(text: str, indent: int = 0, errors: bool = False) -> str:
    """Wrap a sentence at words if it goes to a terminal, with further lines indented.

    The terminal itself would break within words.  A command in backticks stays whole if it fits on a line.
    """
    stream = sys.stderr if errors else sys.stdout
    if stream is None or not stream.isatty():
        return text
    space = " " * indent
    width = max(os.get_terminal_size(stream.fileno()).columns, NARROWEST)
    # Up to two characters of punctuation may adjoin a command.
    fits = f"`[^`\n]{{1,{max(width - indent - 4, 1)}}}`"
    whole = re.sub("`[^`\n]*`", lambda one: one[0].replace(" ", "\0") if re.fullmatch(fits, one[0]) else one[0], text)
    lines = [
        textwrap.fill(
            line,
            width,
            initial_indent=space,
            subsequent_indent=space,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in whole.splitlines()
    ]
    return "\n".join(lines).removeprefix(space).replace("\0", " ")


def discard_output(errors: bool = False) -> None:
    """Discard what could not be written; otherwise the interpreter would try again at exit, and report an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr if errors else None)):
        os.dup2(nowhere, stream.fileno())


def shown(value: object) -> str:
    """Format a value for people, on one line."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, (dict, list)):
        return _printable(json.dumps(value, ensure_ascii=False, default=_plain))
    return _printable(str(value))


def _printable(text: str) -> str:
    """Return the text on one line, with control characters escaped, because payloads and errors may contain some."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
