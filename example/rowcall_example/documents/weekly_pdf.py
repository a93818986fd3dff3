"""The weekly report as PDF."""

from __future__ import annotations

from rowcall_example.documents import weekly
from rowcall_example.documents.colours import MUTED
from rowcall_example.documents.fonts import drawable
from rowcall_example.documents.paper import SMALL_SIZE, Column, Paper
from rowcall_example.documents.wording import days_text, one_line
from rowcall_example.queries import WeeklyFigures

FIGURES = (
    Column("", 2.6),
    Column("This week", 3, figures=True),
    Column("Week before", 3, figures=True),
    Column("Change", 2, figures=True),
)
DAYS = (
    Column("Day", 2),
    Column("Orders", 1.6, figures=True),
    Column("Sessions", 1.6, figures=True),
    Column("Minutes", 1.6, figures=True),
    Column("Amount", 4, figures=True),
)


def compose(figures: WeeklyFigures) -> bytes:
    """Return the PDF; its date is the week's last day."""
    user = figures.user
    paper = Paper("Weekly report", days_text(figures.first, figures.last), figures.last)
    paper.say(f"For {drawable(one_line(user.name), user.email)}", bold=True)
    paper.say(weekly.summary(figures))
    if not figures.week.empty:
        _tell(paper, figures)
    paper.ln(8)
    paper.say(
        f"Days are in the time zone {user.time_zone}. A session and its minutes count on the day it began.",
        SMALL_SIZE,
        MUTED,
    )
    return bytes(paper.output())


def _tell(paper: Paper, figures: WeeklyFigures) -> None:
    paper.section("This week and the week before")
    rows = [*weekly.counts(figures), *weekly.amounts(figures)]
    paper.grid(FIGURES, [(figure.name, figure.now, figure.before, figure.change) for figure in rows])
    charts = list(weekly.charts(figures, paper.width_of_one_in(2)))
    if charts:
        paper.ln(26)
        paper.chart(*(chart.drawing for chart in charts))
    paper.section("Day by day", needs=paper.grid_height(7))
    paper.grid(DAYS, _day_rows(figures))


def _day_rows(figures: WeeklyFigures) -> list[tuple[str, ...]]:
    """Return a row for each day, and another one for each further currency of that day."""
    rows: list[tuple[str, ...]] = []
    for row in weekly.day_rows(figures):
        first, *more = row.amounts or ("–",)
        rows.append((row.day, row.orders, row.sessions, row.minutes, first))
        rows += [("", "", "", "", amount) for amount in more]
    return rows
