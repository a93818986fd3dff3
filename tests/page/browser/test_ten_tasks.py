"""Ten tasks of an operator, from the overview to their end, in as many clicks as docs/page.md says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from rowcall.base.database import PgConnection, fetch_value
from tests.page.browser.other_pages import OTHER_PAGES, Steps
from tests.page.browser.tabs import Open
from tests.page.filled import Filled
from tests.support.processes import ROOT

pytestmark = pytest.mark.program("chromium")

STATUS = "SELECT status FROM rowcall.job_runs WHERE id = %(run_id)s"

COLUMNS = ("Rowcall", *OTHER_PAGES)

# A line of the table.
LINE = re.compile(r"^\|.*\|$", re.MULTILINE)


@dataclass
class Hand:
    """An operator's hand, which counts: clicks, also Enter, and fields that are filled in."""

    page: Page
    clicks: int = 0
    fields: int = 0

    def click(self, what: Locator) -> None:
        """Click on a link, a button, a choice or a folded part."""
        what.click()
        self.clicks += 1

    def follow(self, name: str, inside: str = "body") -> None:
        """Follow the first link with this text."""
        self.click(self.page.locator(inside).get_by_role("link", name=name, exact=True).first)

    def press(self, opener: str, button: str) -> None:
        """Open a form, and send it with its button."""
        form = self.page.locator("details.act", has=self.page.locator("summary", has_text=opener))
        self.click(form.locator("summary"))
        self.click(form.get_by_role("button", name=button, exact=True))

    def find(self, text: str) -> None:
        """Type into the field at the top, and press Enter."""
        self.page.get_by_role("searchbox").first.fill(text)
        self.fields += 1
        self.page.keyboard.press("Enter")
        self.clicks += 1


Do = Callable[[Hand, Filled, PgConnection], None]


def see_why_runs_wait(hand: Hand, filled: Filled, _: PgConnection) -> None:
    expect(hand.page.locator("#now")).to_contain_text(f"late: queue {filled.queue} has been paused since")


def find_a_run(hand: Hand, filled: Filled, _: PgConnection) -> None:
    hand.find('{"invoice_id": 4711}')
    hand.follow(str(filled.dead), "#list")
    expect(hand.page.get_by_role("heading", level=1)).to_contain_text(f"Run {filled.dead}")


def read_a_stack(hand: Hand, filled: Filled, _: PgConnection) -> None:
    hand.follow(f"run {filled.dead}", "#failures")
    hand.click(hand.page.locator("#attempts summary").first)
    expect(hand.page.locator("#attempts")).to_contain_text("shop.errors.PaymentRefused: the card has expired")


def retry_a_run(hand: Hand, filled: Filled, connection: PgConnection) -> None:
    hand.follow(f"run {filled.dead}", "#failures")
    hand.press("Retry…", f"Retry run {filled.dead}")
    expect(hand.page.get_by_role("status").first).to_have_text("The run is queued again.")
    assert fetch_value(connection, STATUS, {"run_id": filled.dead}) == "queued"


def retry_a_group(hand: Hand, _: Filled, connection: PgConnection) -> None:
    row = hand.page.locator("#failures tr", has_text="HTTPError")
    hand.click(row.get_by_role("link", name="Retry group…"))
    hand.click(hand.page.get_by_label("Change one run first"))
    hand.click(hand.page.get_by_role("button", name="Retry these runs"))
    expect(hand.page.get_by_role("status").first).to_have_text("The operation has started.")
    latest = "SELECT (action, matched, canary)::text FROM rowcall.operations ORDER BY id DESC LIMIT 1"
    assert fetch_value(connection, latest) == "(retry,12,f)"


def cancel_a_run(hand: Hand, filled: Filled, connection: PgConnection) -> None:
    hand.click(hand.page.locator("dl.figures div", has_text="Due, not running").get_by_role("link"))
    hand.follow(str(filled.waiting), "#list")
    hand.press("Cancel…", f"Cancel run {filled.waiting}")
    expect(hand.page.get_by_role("status").first).to_contain_text("The run is cancelled")
    assert fetch_value(connection, STATUS, {"run_id": filled.waiting}) == "cancelled"


def pause_a_schedule(hand: Hand, filled: Filled, _: PgConnection) -> None:
    hand.follow(filled.definition, "#schedules")
    hand.press("Pause…", f"Pause {filled.definition}")
    expect(hand.page.get_by_role("heading", level=1)).to_contain_text("paused")


def run_a_schedule_now(hand: Hand, filled: Filled, _: PgConnection) -> None:
    hand.follow(filled.paused_definition, "#schedules")
    hand.press("Run now…", f"Run {filled.paused_definition} now")
    expect(hand.page.get_by_role("status").first).to_have_text("This run was just enqueued.")


def pause_a_queue(hand: Hand, _: Filled, __: PgConnection) -> None:
    hand.follow("Queues")
    row = hand.page.locator("#list tr", has_text="reports")
    hand.click(row.locator("summary"))
    hand.click(row.get_by_role("button", name="Pause the queue reports"))
    expect(hand.page.get_by_role("heading", level=1)).to_contain_text("Queue reports paused")


def look_for_a_mail(hand: Hand, _: Filled, __: PgConnection) -> None:
    hand.find("ada@example.com")
    expect(hand.page.locator("#state")).to_contain_text("applied It happened, and is not performed again.")


TASKS: dict[str, Do] = {
    "See why runs are waiting: their queue is paused": see_why_runs_wait,
    "Find the run about an invoice by its payload": find_a_run,
    "Read the error and the stack of the newest failure": read_a_stack,
    "Retry a dead run": retry_a_run,
    "Retry all runs that died of one error": retry_a_group,
    "Cancel a waiting run": cancel_a_run,
    "Pause a schedule": pause_a_schedule,
    "Run a schedule's job now": run_a_schedule_now,
    "Pause a queue": pause_a_queue,
    "Find out whether a customer was mailed": look_for_a_mail,
}


def table() -> dict[str, dict[str, str]]:
    """Return the cells of the table in docs/page.md, by task and column."""
    section = (ROOT / "docs/page.md").read_text().partition("## How many clicks it takes")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINE.findall(section)]
    assert rows[0][1:] == [*COLUMNS]
    return {task: dict(zip(COLUMNS, cells, strict=True)) for task, *cells in rows[2:]}


def cell(clicks: int, fields: int) -> str:
    """Return how the table writes these numbers."""
    return f"{clicks} + {fields}" if fields else str(clicks)


def counted(steps: Steps) -> str:
    """Return what the table has for these steps."""
    if steps is None:
        return "–"
    fields = sum(step.startswith("type ") for step in steps)
    return cell(len(steps) - fields, fields)


def test_the_docs_list_these_tasks() -> None:
    assert list(table()) == list(TASKS)


@pytest.mark.parametrize("name", OTHER_PAGES)
def test_the_docs_count_the_steps_that_are_listed_for_other_pages(name: str) -> None:
    told = {task: cells[name].removesuffix(" (Pro)") for task, cells in table().items()}
    assert told == {task: counted(steps) for task, steps in OTHER_PAGES[name].items()}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_as_many_clicks_as_the_docs_say(
    open_tab: Open, filled: Filled, committed: PgConnection, task: str
) -> None:
    hand = Hand(open_tab().go())
    TASKS[task](hand, filled, committed)
    assert cell(hand.clicks, hand.fields) == table()[task]["Rowcall"]
