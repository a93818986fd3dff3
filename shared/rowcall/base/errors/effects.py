"""Errors of the effects ledger."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.base.errors.attempts import Permanent
from rowcall.base.errors.process import RowcallError
from rowcall.base.errors.sentences import Fault, did_you_mean


class EffectInvalid(Permanent):
    """A handler requested an invalid effect; another attempt would request the same."""


class EffectKindUnknown(RowcallError):
    """A requested kind of effect is not built in, and no effect has it."""

    code = "effect-kind-unknown"

    def __init__(self, kind: str, known: Iterable[str]) -> None:
        names = [*known]
        parts = (f"known kinds: {', '.join(names)}", did_you_mean(kind, names))
        super().__init__("; ".join((f"there are no effects of kind {kind!r}", *filter(None, parts))))

    @property
    def fault(self) -> Fault:
        """What is wrong with the value that names this kind."""
        return Fault(str(self), self.code)


class EffectNotFound(RowcallError):
    """No effect of this kind has this id."""

    def __init__(self, kind: str, effect_id: int, known: Iterable[str] = ()) -> None:
        question = "" if kind in (names := [*known]) else did_you_mean(kind, names)
        parts = (f"there is no effect {effect_id} of {kind}", "`rowcall effects list` shows all effects", question)
        super().__init__("; ".join(filter(None, parts)))


class EffectNotOpen(RowcallError):
    """An effect cannot be resolved in its `state`."""

    def __init__(self, state: str, sentence: str) -> None:
        self.state = state
        super().__init__(sentence)


class FileMissing(RowcallError):
    """A generated file cannot be opened where this process looks for it."""


class FileChanged(RowcallError):
    """A generated file is not the one that its handler wrote."""


class EffectConflict(Permanent):
    """An effect's key was used again with different content."""


class AmbiguousEffect(Permanent):
    """An effect may have happened and must not be repeated; an operator resolves it."""
