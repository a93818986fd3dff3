"""One answer of doctor's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The subject of a check, whether it is good, and a sentence."""

    subject: str
    good: bool
    message: str
