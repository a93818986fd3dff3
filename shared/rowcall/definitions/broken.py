"""Definitions that this process cannot decide; none stops or delays another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rowcall.base.clock import elapsed
from rowcall.base.errors import DefinitionBroken, RowcallError, message_of, raise_if_interrupted

# A broken definition is tried this often: what breaks it may take long, and the others must not wait for it each tick.
REST_SECONDS = 60.0


@dataclass(frozen=True)
class Broken:
    """A definition that could not be decided, and why; it stays unchanged, for an operator to mend."""

    name: str
    revision: int
    error: str


@dataclass
class Resting:
    """The definitions that this process could not decide, and leaves alone for a while; an edit ends the rest."""

    seconds: float = REST_SECONDS
    _until: dict[tuple[int, int], float] = field(default_factory=dict)

    def add(self, definition_id: int, revision: int) -> None:
        """Ignore this revision of the definition from now on."""
        self._until[definition_id, revision] = elapsed() + self.seconds

    def now(self) -> list[tuple[int, int]]:
        """Id and revision of those that still rest."""
        self._until = {which: until for which, until in self._until.items() if until > elapsed()}
        return list(self._until)


@contextmanager
def breaking(name: str) -> Iterator[None]:
    """Turn whatever a definition's content or its type's own code raises into an error of this definition."""
    try:
        yield
    except RowcallError:
        raise
    except BaseException as error:
        raise_if_interrupted(error)
        raise DefinitionBroken(name, f"{type(error).__name__}: {message_of(error)}") from error
