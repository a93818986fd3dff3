"""Versions of a definition, and changes that are conditional on the version that the caller read."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from rowcall.base.database import Row
from rowcall.base.errors import DefinitionChanged


@dataclass(frozen=True)
class Precondition:
    """The versions that a definition must have (`match`) or must not have (`none_match`); None allows any.

    It is checked while the definition's row is locked.  A definition that does not exist has no version.
    """

    match: Container[str] | None = None
    none_match: Container[str] | None = None

    def check(self, row: Row) -> None:
        """Raise DefinitionChanged if the definition does not meet the condition."""
        version = None if row["removed_at"] else version_of(row)
        if self.match is not None and (version is None or version not in self.match):
            raise DefinitionChanged(row["name"], version)
        if self.none_match is not None and version is not None and version in self.none_match:
            raise DefinitionChanged(row["name"], version)


UNCONDITIONAL = Precondition()


def version_of(row: Row) -> str:
    """Return a short text that changes with the content and with each pause and resume, but not with a tick."""
    return f"{row['revision']}-paused" if row["paused_at"] else f"{row['revision']}"
