"""One finding of `rowcall doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of a check: its subject, whether all is well, and a sentence."""

    subject: str
    good: bool
    message: str
