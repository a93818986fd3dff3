"""docs/resolving-effects.md, typed word for word after a mail whose server gave no answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.page import Reader, blocks

FIND, HAPPENED, DID_NOT_HAPPEN, OPEN = blocks("resolving-effects.md", "sh")

# In front of the handler's own: the first mail gets no answer.
NO_ANSWER = """
from pathlib import Path
from rowcall import OutcomeUnknown


def send(gateway, **mail):
    if not Path("asked").exists():
        Path("asked").touch()
        raise OutcomeUnknown("no answer")
    return gateway.send(**mail)
"""


@pytest.fixture
def reader(tmp_path: Path, fresh_url: str) -> Reader:
    """The folder of an app, whose run 1 is dead and has the unknown effect 1."""
    Reader(tmp_path).type("rowcall new shop")
    reader = Reader(tmp_path / "shop", fresh_url, ROWCALL_APP="shop")
    handlers = reader.folder / "shop" / "handlers.py"
    handlers.write_text(handlers.read_text().replace("run.gateways.mail.send(", "send(run.gateways.mail, ") + NO_ANSWER)
    reader.type('rowcall enqueue shop_weekly_report \'{"week": "2026-01-12"}\'; rowcall worker once')
    return reader


def as_here(commands: str) -> str:
    return commands.replace("4711", "1").replace(" 12 ", " 1 ")


def mails(reader: Reader) -> int:
    return len(list((reader.folder / ".rowcall" / "mail").glob("*.eml")))


@pytest.mark.parametrize(("commands", "sent"), [(HAPPENED, 0), (DID_NOT_HAPPEN, 1)])
def test_an_unknown_mail_is_sent_only_if_the_operator_says_that_it_was_not(
    reader: Reader, commands: str, sent: int
) -> None:
    found = reader.type(as_here(FIND))
    assert re.search("sent_emails .*unknown", found)
    assert "no answer" in found
    reader.type(as_here(commands))
    assert "succeeded 1" in reader.type("rowcall worker once")
    assert mails(reader) == sent
    assert "applied" in reader.type("rowcall effects list")


def test_what_is_open_is_listed(reader: Reader) -> None:
    assert "no effects match" in reader.type(as_here(OPEN)).splitlines()[0]
