"""Errors of the ledger of effects."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.base.errors.attempts import Permanent
from rowcall.base.errors.process import RowcallError


class EffectInvalid(Permanent):
    """A handler asked for an effect that there cannot be; trying again asks for the same."""


class EffectKindUnknown(RowcallError):
    """Effects were asked for of a kind that is neither built in nor has any."""

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no effect of the kind {kind!r}; there are effects of: {', '.join(known)}")


class EffectNotFound(RowcallError):
    """No effect of this kind has this id."""

    def __init__(self, kind: str, effect_id: int) -> None:
        super().__init__(f"there is no effect {effect_id} of {kind}; `rowcall effects list` shows those that are")


class EffectNotOpen(RowcallError):
    """An effect cannot be resolved in its `state`."""

    def __init__(self, state: str, sentence: str) -> None:
        self.state = state
        super().__init__(sentence)


class EffectConflict(Permanent):
    """An effect's key was used again for other content."""


class AmbiguousEffect(Permanent):
    """An effect may have happened and must not be repeated; an operator resolves it."""
