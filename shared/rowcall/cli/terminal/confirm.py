"""Asks before a change that cannot be undone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

yes_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation."
)


def confirm(consequence: str, yes: bool) -> None:
    """Continue only if a person at a terminal agrees, or --yes was given."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():  # None: the shell's <&-
        raise click.UsageError(f"{consequence}: there is no terminal to ask for confirmation; use --yes")
    click.confirm(f"{consequence}.  Continue?", abort=True, err=True)
