"""Versions of a definition, and changes that depend on the one that the caller has seen."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from rowcall.base.database import Row
from rowcall.base.errors import DefinitionChanged


@dataclass(frozen=True)
class Precondition:
    """The versions that a definition must have to be changed, and those that it must not have; None: it may have any.

    Each is checked while the definition's row is locked.  One that does not exist has no version.
    """

    match: Container[str] | None = None
    none_match: Container[str] | None = None

    def check(self, row: Row) -> None:
        """Raise DefinitionChanged if the definition does not meet this."""
        version = None if row["removed_at"] else version_of(row)
        if self.match is not None and (version is None or version not in self.match):
            raise DefinitionChanged(row["name"], version)
        if self.none_match is not None and version is not None and version in self.none_match:
            raise DefinitionChanged(row["name"], version)


UNCONDITIONAL = Precondition()


def version_of(row: Row) -> str:
    """A short text that changes with the content, and with every pause and resume; a tick leaves it as it is."""
    return f"{row['revision']}-paused" if row["paused_at"] else f"{row['revision']}"
