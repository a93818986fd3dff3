"""docs/resolving-effects.md, typed word for word after an email without an answer, and after a kill."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.page import Reader, blocks

FIND, HAPPENED, DID_NOT_HAPPEN, OPEN = blocks("resolving-effects.md", "sh")

# Beside the handler, which calls it: the first email ends like this.
SEND = """
import os
from pathlib import Path
from rowcall import OutcomeUnknown


def send(gateway, **mail):
    if not Path("asked").exists():
        Path("asked").touch()
        {end}
    return gateway.send(**mail)
"""
NO_ANSWER = 'raise OutcomeUnknown("no answer")'
KILLED = "os._exit(9)"


@pytest.fixture
def reader(tmp_path: Path, fresh_url: str) -> Reader:
    """The folder of an app; its definition has no run yet."""
    Reader(tmp_path).type("rowcall new shop")
    return Reader(tmp_path / "shop", fresh_url, ROWCALL_APP="shop")


def ask(reader: Reader, end: str) -> None:
    """Enqueue a run with one attempt, whose email ends like this."""
    handlers = reader.folder / "shop" / "handlers.py"
    calls_ours = handlers.read_text().replace("run.gateways.mail.send(", "send(run.gateways.mail, ")
    handlers.write_text(calls_ours + SEND.format(end=end))
    reader.type('rowcall enqueue --max-attempts 1 shop_weekly_report \'{"week": "2026-01-12"}\'')


def as_here(commands: str) -> str:
    return commands.replace("4711", "1").replace(" 12 ", " 1 ")


def mails(reader: Reader) -> int:
    return len(list((reader.folder / ".rowcall" / "mail").glob("*.eml")))


@pytest.mark.parametrize(("commands", "sent"), [(HAPPENED, 0), (DID_NOT_HAPPEN, 1)])
def test_an_unknown_mail_is_sent_only_if_the_operator_says_that_it_was_not(
    reader: Reader, commands: str, sent: int
) -> None:
    ask(reader, NO_ANSWER)
    reader.type("rowcall worker once")
    found = reader.type(as_here(FIND))
    assert re.search("sent_emails .*unknown", found)
    assert "no answer" in found
    reader.type(as_here(commands))
    assert "succeeded 1" in reader.type("rowcall worker once")
    assert mails(reader) == sent
    assert "applied" in reader.type("rowcall effects list")


def test_after_a_kill_the_dead_run_is_found_by_its_open_effect_and_retried(reader: Reader, fresh_url: str) -> None:
    ask(reader, KILLED)
    reader.type("rowcall worker once", code=9)
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.job_runs SET locked_until = now() WHERE status = 'running'")
    reader.type("rowcall worker once")
    assert reader.type("rowcall runs show 1").splitlines()[0].split()[-1] == "dead"
    found = reader.type(as_here(OPEN))
    assert re.search("sent_emails .*intent", found)
    reader.type("rowcall worker once")
    assert re.search("sent_emails .*unknown", reader.type(as_here(FIND)))
    assert mails(reader) == 0
