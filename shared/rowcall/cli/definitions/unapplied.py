"""Definitions that the code declares but the database does not have."""

from __future__ import annotations

from typing import Any

import click

from rowcall.base.errors import DefinitionNotFound, RowcallError
from rowcall.cli.terminal.group import Group
from rowcall.job_types import catalogue


def not_applied(name: str) -> str:
    """Say that only the code has this definition, and which command applies it."""
    return f"the code declares {name!r}, but the database does not have it: `rowcall definitions apply` creates it"


class DefinitionsGroup(Group):
    """The commands for definitions: they distinguish a definition that was not applied from an unknown one."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; look in the code for a definition that the database does not have."""
        try:
            return super().invoke(ctx)
        except DefinitionNotFound as error:
            if error.name not in catalogue().definitions:
                raise
            raise RowcallError(not_applied(error.name)) from None
