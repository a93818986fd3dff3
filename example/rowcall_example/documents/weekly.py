"""The words and rows of a weekly report, the same in the letter and in the PDF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowcall_example.documents.chart import Drawing, Series, bars
from rowcall_example.documents.colours import ACCENT, EARLIER
from rowcall_example.documents.wording import change_text, counted, days_text, share_text
from rowcall_example.money import money_text
from rowcall_example.queries import DayFigures, Week, WeeklyFigures

CHART_HEIGHT = 158.0


@dataclass(frozen=True)
class Figure:
    """One number of the week compared with the week before."""

    name: str
    now: str
    before: str
    change: str
    rose: bool


@dataclass(frozen=True)
class DayRow:
    """One day of the table; it has an amount for each currency, or none."""

    day: str
    orders: str
    amounts: tuple[str, ...]
    sessions: str
    minutes: str


@dataclass(frozen=True)
class Chart:
    """A chart, and what it shows as a sentence for those who cannot see it."""

    name: str
    drawing: Drawing
    sentence: str


def summary(figures: WeeklyFigures) -> str:
    """Return the week in a sentence or two."""
    days, week, before = days_text(figures.first, figures.last), figures.week, figures.before
    if not week.empty:
        return f"{days} had {_happened(week)}: {_compared(week.orders, before.orders)}."
    if not before.empty:
        return f"{days} was quiet: no orders and no sessions. The week before had {_happened(before)}."
    return (
        f"{days} was quiet: no orders and no sessions. That is fine:"
        " everything is as you left it, and ready when you are."
    )


def _happened(week: Week) -> str:
    return f"{counted(week.orders, 'order')} and {counted(week.sessions, 'session')}"


def _compared(now: int, before: int) -> str:
    if now == before:
        return "as many orders as the week before"
    return f"{counted(abs(now - before), 'order')} {'more' if now > before else 'fewer'} than the week before"


def counts(figures: WeeklyFigures) -> Iterator[Figure]:
    """Yield the counts."""
    for name in ("orders", "sessions", "minutes"):
        now, before = getattr(figures.week, name), getattr(figures.before, name)
        yield Figure(
            name.capitalize(),
            f"{now:,}",
            f"{before:,}",
            change_text(now, before),
            now > before,
        )


def amounts(figures: WeeklyFigures) -> Iterator[Figure]:
    """Yield the sums of both weeks in each currency that either has."""
    now, before = (
        {sales.currency: sales.amount_minor for sales in week.sales} for week in (figures.week, figures.before)
    )
    for currency in sorted(now | before):
        this, last = now.get(currency, 0), before.get(currency, 0)
        yield Figure(
            f"Sales in {currency}",
            money_text(this, currency),
            money_text(last, currency),
            share_text(this, last),
            this > last,
        )


def day_rows(figures: WeeklyFigures) -> Iterator[DayRow]:
    """Yield the rows of the table."""
    for day in figures.week.days:
        yield DayRow(
            f"{day.day:%a} {day.day.day} {day.day:%b}",
            _or_dash(day.orders),
            tuple(money_text(sales.amount_minor, sales.currency) for sales in day.sales),
            _or_dash(day.sessions),
            _or_dash(day.minutes),
        )


def charts(figures: WeeklyFigures, width: float) -> Iterator[Chart]:
    """Yield charts of orders and minutes per day, compared with the week before, unless all values are zero."""
    for name, title in (("orders", "Orders per day"), ("minutes", "Minutes per day")):
        now, before = ([getattr(day, name) for day in week.days] for week in (figures.week, figures.before))
        if any(now + before):
            series = [Series("Week before", EARLIER, before), Series("This week", ACCENT, now)]
            labels = [_label(day) for day in figures.week.days]
            shown = ", ".join(f"{label} {value}" for label, value in zip(labels, now, strict=True))
            sentence = f"{title}: {shown}. The week before: {', '.join(map(str, before))}."
            yield Chart(name, bars(title, labels, series, width, CHART_HEIGHT), sentence)


def _label(day: DayFigures) -> str:
    return f"{day.day:%a} {day.day.day}"


def _or_dash(number: int) -> str:
    return f"{number:,}" if number else "–"
