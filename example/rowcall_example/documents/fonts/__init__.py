"""The documents' font, and which text it can show."""

from __future__ import annotations

import functools
import unicodedata
from pathlib import Path

from fontTools.ttLib import TTFont

REGULAR = Path(__file__).with_name("OpenSans-Regular.ttf")
BOLD = Path(__file__).with_name("OpenSans-Bold.ttf")

# Right-to-left scripts need more than glyphs: joined letters, and lines in two directions.
RIGHT_TO_LEFT = ("R", "AL", "AN")


@functools.cache
def _glyphs() -> frozenset[int]:
    """Return the characters that both weights have."""
    return frozenset.intersection(*(frozenset(TTFont(path).getBestCmap()) for path in (REGULAR, BOLD)))


def drawable(text: str, otherwise: str) -> str:
    """Return the text if the font has all its characters, or else `otherwise`; pictures and PDFs have no other font.

    Without this, a name in another script would be a row of empty boxes; an address tells the reader more.
    """
    composed = unicodedata.normalize("NFC", text)
    if all(_can_set(sign) for sign in composed):
        return composed
    return "".join(sign if _can_set(sign) else "?" for sign in unicodedata.normalize("NFC", otherwise))


def _can_set(sign: str) -> bool:
    return ord(sign) in _glyphs() and unicodedata.bidirectional(sign) not in RIGHT_TO_LEFT
