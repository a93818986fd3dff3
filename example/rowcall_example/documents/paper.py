"""Pages: A4, one font, a title, paragraphs, charts, and tables that may continue over several pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from rowcall_example.documents.chart import Box, Drawing
from rowcall_example.documents.colours import ACCENT, INK, LINE, MUTED
from rowcall_example.documents.fonts import BOLD, REGULAR
from rowcall_example.documents.wording import ADDRESS, COMPANY

MARGIN = 52.0
FOOT = 56.0
FONT = "Open Sans"

TEXT_SIZE = 9.5
SMALL_SIZE = 8.5
ROW_HEIGHT = 18.0
# Between a cell's text and the next column.
GAP = 12.0
# Between charts side by side.
BESIDE = 24.0


@dataclass(frozen=True)
class Column:
    """A table's column; widths are relative.  Figures are right-aligned and never cut."""

    title: str
    width: float
    figures: bool = False


class Look(NamedTuple):
    """The style of a row's text."""

    size: float
    colour: str
    bold: bool = False


HEADING = Look(SMALL_SIZE, MUTED, bold=True)
PLAIN = Look(TEXT_SIZE, INK)


class Paper(FPDF):
    """A document; `made_on` becomes the PDF's creation date, so that the bytes do not depend on the clock."""

    def __init__(self, title: str, about: str, made_on: date) -> None:
        super().__init__(unit="pt", format="A4")
        self._heading, self._about = title, about
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(True, FOOT + 14)
        self.add_font(FONT, "", REGULAR)
        self.add_font(FONT, "B", BOLD)
        self.set_title(f"{title}: {about}")
        self.set_lang("en")
        self.set_creator("Rowcall")
        self.set_creation_date(datetime.combine(made_on, time(), UTC))
        self.c_margin = 0
        self.add_page()

    @property
    def bottom(self) -> float:
        """Return the lower end of a page's content."""
        return self.h - self.b_margin

    def header(self) -> None:
        """Draw the title: large on the first page, small on the others."""
        if self.page_no() == 1:
            self.set_fill_color(ACCENT)
            self.rect(0, 0, self.w, 7, style="F")
            self.set_y(MARGIN)
            self.say(self._heading, size=23, bold=True, height=30)
            self.say(self._about, size=12, colour=MUTED, height=18)
            self.ln(16)
        else:
            self.set_y(MARGIN - 14)
            self.say(f"{self._heading}: {self._about}", size=SMALL_SIZE, colour=MUTED)
            self.ln(12)

    def footer(self) -> None:
        """Draw the company and the page's number."""
        self.set_y(-FOOT + 14)
        self.style(SMALL_SIZE, MUTED)
        self.cell(0, 12, f"{COMPANY}, {ADDRESS}   ·   Page {self.page_no()} of {{nb}}")

    def style(self, size: float, colour: str, bold: bool = False) -> None:
        """Set the style of the next text."""
        self.set_font(FONT, "B" if bold else "", size)
        self.set_text_color(colour)

    def say(
        self, text: str, size: float = TEXT_SIZE, colour: str = INK, bold: bool = False, height: float = 14
    ) -> None:
        """Add a paragraph across the page."""
        self.style(size, colour, bold)
        self.multi_cell(0, height, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def section(self, title: str, needs: float = 0) -> None:
        """Add a heading, on a new page if its content would not fit."""
        if self.get_y() + 40 + needs > self.bottom:
            self.add_page()
        else:
            self.ln(16)
        self.say(title, size=12.5, bold=True, height=18)
        self.ln(4)

    def chart(self, *drawings: Drawing) -> None:
        """Add drawings side by side, as vectors that stay sharp at any size."""
        height = max(drawing.height for drawing in drawings)
        if self.get_y() + height > self.bottom:
            self.add_page()
        left, upper = self.l_margin, self.get_y()
        for drawing in drawings:
            self._paint(drawing, left, upper)
            left += drawing.width + BESIDE
        self.set_xy(self.l_margin, upper + height)

    def _paint(self, drawing: Drawing, left: float, upper: float) -> None:
        for shape in drawing.shapes:
            if isinstance(shape, Box):
                self.set_fill_color(shape.colour)
                self.rect(left + shape.x, upper + shape.y, shape.width, shape.height, style="F")
            else:
                self.style(shape.size, shape.colour, shape.bold)
                shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[shape.at] * self.get_string_width(shape.text)
                self.text(left + shape.x - shift, upper + shape.y, shape.text)

    def width_of_one_in(self, number: int) -> float:
        """Return the width of each drawing if this many fill the width of the page."""
        return (self.epw - BESIDE * (number - 1)) / number

    def grid(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        """Add a table with its headings on every page; a row with an empty first cell continues the one above."""
        headings, told_of = [column.title for column in columns], ""
        self._row(columns, headings, HEADING)
        for row in rows:
            first, *cells = row
            told_of = first or told_of
            if self.get_y() + ROW_HEIGHT > self.bottom:
                self._rule()
                self.add_page()
                self._row(columns, headings, HEADING)
                first = told_of
            if first:
                self._rule()
            self._row(columns, [first, *cells], PLAIN)
        self._rule()

    def grid_height(self, rows: int) -> float:
        """Return the height of a table with this many rows."""
        return ROW_HEIGHT * (rows + 1)

    def _row(self, columns: Sequence[Column], cells: Sequence[str], look: Look) -> None:
        left, upper = self.l_margin, self.get_y()
        share = self.epw / sum(column.width for column in columns)
        for column, cell in zip(columns, cells, strict=True):
            self._cell(cell, left, upper, column.width * share, column.figures, look)
            left += column.width * share
        self.set_xy(self.l_margin, upper + ROW_HEIGHT)

    def _rule(self) -> None:
        self.set_draw_color(LINE)
        self.set_line_width(0.75)
        self.line(self.l_margin, self.get_y(), self.w - self.r_margin, self.get_y())

    def _cell(self, text: str, left: float, upper: float, width: float, figures: bool, look: Look) -> None:
        """Draw a cell: text is cut to the cell's width, and figures are made smaller to fit."""
        room = width - GAP
        self.style(look.size, look.colour, look.bold)
        if figures:
            self.set_font_size(look.size * min(1, room / max(self.get_string_width(text), 1)))
            left += width - self.get_string_width(text)
        else:
            text = self._cut(text, room)
        self.text(left, upper + ROW_HEIGHT / 2 + look.size * 0.36, text)

    def _cut(self, text: str, room: float) -> str:
        """Return the text, or as much of its beginning as fits."""
        if self.get_string_width(text) <= room:
            return text
        while text and self.get_string_width(f"{text}…") > room:
            text = text[:-1]
        return f"{text.rstrip()}…"
