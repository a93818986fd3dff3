"""A day's sales as PDF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rowcall_example.documents.chart import Drawing, Series, bars
from rowcall_example.documents.colours import ACCENT, MUTED
from rowcall_example.documents.fonts import drawable
from rowcall_example.documents.paper import SMALL_SIZE, Column, Paper
from rowcall_example.documents.wording import counted, day_text, one_line
from rowcall_example.money import money_text
from rowcall_example.queries import CurrencySales, DaySales

CHART_HEIGHT = 190.0

TOTALS = (
    Column("Currency", 2),
    Column("Customers", 2, figures=True),
    Column("Orders", 2, figures=True),
    Column("Average order", 3.5, figures=True),
    Column("Amount", 3.5, figures=True),
)
HOURS = (
    Column("Hour (UTC)", 2.5),
    Column("Orders", 2, figures=True),
    Column("Amount", 4, figures=True),
)
CUSTOMERS = (
    Column("#", 0.75),
    Column("Customer", 3),
    Column("Email", 3.7),
    Column("Orders", 0.95, figures=True),
    Column("Amount", 2.3, figures=True),
)


def compose(sales: DaySales) -> bytes:
    """Return the PDF."""
    paper = Paper("Sales report", f"{sales.day:%A}, {day_text(sales.day)}", sales.day)
    if sales.orders:
        _overview(paper, sales)
        _hours(paper, sales)
        _customers(paper, sales)
    else:
        paper.say("There were no orders on this day.")
    return bytes(paper.output())


def _overview(paper: Paper, sales: DaySales) -> None:
    paper.say(f"{counted(sales.orders, 'order')} in {counted(len(sales.currencies), 'currency', 'currencies')}.")
    paper.ln(6)
    paper.grid(TOTALS, [_total(part) for part in sales.currencies])
    paper.ln(24)
    paper.chart(orders_by_hour(sales, paper.epw))
    paper.ln(4)
    paper.say("The day and its hours are in UTC. Amounts are never added up across currencies.", SMALL_SIZE, MUTED)


def _total(part: CurrencySales) -> tuple[str, ...]:
    # In whole numbers: a float would round large sums.
    average = (part.amount_minor + part.orders // 2) // part.orders
    return (
        part.currency,
        f"{part.customers:,}",
        f"{part.orders:,}",
        money_text(average, part.currency),
        money_text(part.amount_minor, part.currency),
    )


def orders_by_hour(sales: DaySales, width: float) -> Drawing:
    """Draw the orders of all currencies together: orders can be added up, money cannot."""
    orders = Counter[int]()
    for part in sales.currencies:
        orders.update({hour.hour: hour.orders for hour in part.hours})
    series = Series("Orders", ACCENT, [orders[hour] for hour in range(24)])
    return bars("Orders by hour", [f"{hour:02}" for hour in range(24)], [series], width, CHART_HEIGHT)


def _hours(paper: Paper, sales: DaySales) -> None:
    paper.section("By hour", needs=paper.grid_height(3))
    hours = sorted((hour for part in sales.currencies for hour in part.hours), key=lambda hour: hour.hour)
    earlier = [-1, *(hour.hour for hour in hours)]
    paper.grid(
        HOURS,
        [
            (
                "" if hour.hour == above else f"{hour.hour:02}:00 – {hour.hour:02}:59",
                f"{hour.orders:,}",
                money_text(hour.amount_minor, hour.currency),
            )
            for above, hour in zip(earlier, hours, strict=False)
        ],
    )


def _customers(paper: Paper, sales: DaySales) -> None:
    """Add the best customers of each currency."""
    paper.section("By customer", needs=paper.grid_height(3))
    paper.grid(CUSTOMERS, [row for part in sales.currencies for row in _customer_rows(part)])
    for part in sales.currencies:
        unnamed = part.customers - len(part.best)
        if unnamed:
            paper.ln(4)
            sentence = f"{counted(unnamed, 'more customer')} in {part.currency} spent less than these."
            paper.say(sentence, SMALL_SIZE, MUTED)


def _customer_rows(part: CurrencySales) -> Iterator[tuple[str, ...]]:
    for place, customer in enumerate(part.best, start=1):
        yield (
            str(place),
            drawable(one_line(customer.name), f"Customer {customer.user_id}"),
            drawable(one_line(customer.email), one_line(customer.email)),
            f"{customer.orders:,}",
            money_text(customer.amount_minor, part.currency),
        )
