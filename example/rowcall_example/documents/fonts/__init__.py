"""The documents' own font, and what it can set."""

from __future__ import annotations

import functools
import unicodedata
from pathlib import Path

from fontTools.ttLib import TTFont

REGULAR = Path(__file__).with_name("OpenSans-Regular.ttf")
BOLD = Path(__file__).with_name("OpenSans-Bold.ttf")

# Scripts from right to left need more than glyphs: letters that join, and lines in two directions.
RIGHT_TO_LEFT = ("R", "AL", "AN")


@functools.cache
def _glyphs() -> frozenset[int]:
    """The characters that both weights have."""
    return frozenset.intersection(*(frozenset(TTFont(path).getBestCmap()) for path in (REGULAR, BOLD)))


def drawable(text: str, otherwise: str) -> str:
    """The text if the font can set all of it, else what is said instead; a picture and a PDF have no other font.

    A name in letters that the font does not have would be a row of empty boxes; an address tells the reader more.
    """
    composed = unicodedata.normalize("NFC", text)
    if all(_can_set(sign) for sign in composed):
        return composed
    return "".join(sign if _can_set(sign) else "?" for sign in unicodedata.normalize("NFC", otherwise))


def _can_set(sign: str) -> bool:
    return ord(sign) in _glyphs() and unicodedata.bidirectional(sign) not in RIGHT_TO_LEFT
