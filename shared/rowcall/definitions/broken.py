"""Definitions that a tick cannot process; they do not stop or delay the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.errors import DefinitionBroken, RowcallError, message_of, raise_if_interrupted

# How long to wait before trying a broken definition again: it may fail slowly, and must not delay every tick.
REST_SECONDS = 60.0


@dataclass(frozen=True)
class Broken:
    """A definition whose nominal times could not be processed, and why; it stays until an operator fixes it."""

    name: str
    revision: int
    error: str


@dataclass
class Resting:
    """The broken definitions that this process ignores for a while; an edited one is tried again at once."""

    seconds: float = REST_SECONDS
    _until: dict[tuple[int, int], float] = field(default_factory=dict)

    def add(self, definition_id: int, revision: int) -> None:
        """Ignore this revision of the definition for a while."""
        self._until[definition_id, revision] = elapsed() + self.seconds

    def now(self) -> list[tuple[int, int]]:
        """Return the ids and revisions that are still ignored."""
        self._until = {which: until for which, until in self._until.items() if until > elapsed()}
        return list(self._until)


@contextmanager
def breaking(name: str) -> Iterator[None]:
    """Turn any error from a definition's content, or from its job type's code, into DefinitionBroken."""
    try:
        yield
    except RowcallError:
        raise
    except BaseException as error:
        raise_if_interrupted(error)
        raise DefinitionBroken(name, f"{type(error).__name__}: {message_of(error)}") from error
