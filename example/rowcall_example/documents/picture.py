"""A drawing as a PNG."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont

from rowcall_example.documents.chart import Box, Drawing, Words
from rowcall_example.documents.fonts import BOLD, REGULAR

# Three, because emails show the picture enlarged, often on screens with two pixels per point.  The picture is drawn at
# twice that size, for smooth edges.
PIXELS_PER_POINT = 3
FINER = 2

# White around the drawing, so that it is readable in an email with a dark background.
MARGIN = 12
COLOURS = 64

ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png(drawing: Drawing) -> bytes:
    """Return the picture.  Nothing is reused, because a FreeType face belongs to one thread."""
    scale = PIXELS_PER_POINT * FINER
    size = (round((drawing.width + 2 * MARGIN) * scale), round((drawing.height + 2 * MARGIN) * scale))
    image = Image.new("RGB", size, "white")
    canvas = Canvas(image, scale)
    for shape in drawing.shapes:
        if isinstance(shape, Box):
            canvas.box(shape)
        else:
            canvas.words(shape)
    smooth = image.resize((size[0] // FINER, size[1] // FINER), Image.Resampling.BOX).quantize(COLOURS)
    written = io.BytesIO()
    smooth.save(written, "PNG", optimize=True, dpi=(72 * PIXELS_PER_POINT,) * 2)
    return written.getvalue()


class Canvas:
    """An image to draw on, with coordinates in points."""

    def __init__(self, image: Image.Image, scale: int) -> None:
        self._draw = ImageDraw.Draw(image)
        self._scale = scale
        self._fonts: dict[tuple[bool, float], ImageFont.FreeTypeFont] = {}

    def box(self, box: Box) -> None:
        """Fill a rectangle."""
        left, upper, right, lower = (
            round((edge + MARGIN) * self._scale) for edge in (box.x, box.y, box.x + box.width, box.y + box.height)
        )
        corners = (left, upper, max(right - 1, left), max(lower - 1, upper))
        self._draw.rounded_rectangle(
            corners, box.radius * self._scale, fill=box.colour, corners=(True, True, False, False)
        )

    def words(self, words: Words) -> None:
        """Draw a line of text."""
        place = ((words.x + MARGIN) * self._scale, (words.y + MARGIN) * self._scale)
        self._draw.text(
            place, words.text, fill=words.colour, font=self._font(words.bold, words.size), anchor=ANCHORS[words.at]
        )

    def _font(self, bold: bool, size: float) -> ImageFont.FreeTypeFont:
        if (bold, size) not in self._fonts:
            # Basic layout, because the alternative needs a library that may not be installed.
            self._fonts[bold, size] = ImageFont.truetype(
                BOLD if bold else REGULAR, size * self._scale, layout_engine=ImageFont.Layout.BASIC
            )
        return self._fonts[bold, size]
