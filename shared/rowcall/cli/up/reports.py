"""How `up` reports what it starts, and where its child processes write their logs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import IO

POSTGRES, API, WORKER = SERVICES = ("PostgreSQL", "API", "worker")


class Reports:
    """Reports nothing: `up` prints all of it at the end, and its children write to the same standard error."""

    # Default settings for the children; the environment overrides them.
    environment: Mapping[str, str] = MappingProxyType({})

    # Where to look if a child ends by itself.
    hint = "see the error above"

    def started(self, service: str, detail: str = "") -> None:
        """Report that one of SERVICES is ready."""

    def stopping(self) -> None:
        """Report that everything is about to be stopped."""

    def errors_of(self, command: str) -> IO[bytes] | None:
        """Return the file for the standard error of a child that runs this command; None means our own."""
        return None
