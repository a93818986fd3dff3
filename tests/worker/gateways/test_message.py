"""The bytes of an email: names, subjects and texts arrive as typed, and cannot add headers."""

from __future__ import annotations

import re
import string
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import compat32, default
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowcall.base.endpoints import Mailbox
from rowcall.base.errors import Unusable
from rowcall_worker.gateways import Attachment
from rowcall_worker.gateways.message import Letter, compose

SENDER = Mailbox("reports@example.com", "Rowcall")

WRITTEN = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"]


def letter(**given: Any) -> Letter:
    """Return a letter, ordinary except for these values."""
    ordinary: dict[str, Any] = {
        "to": "ada@example.com",
        "name": "",
        "subject": "Hello",
        "text": "Hi",
        "html": None,
        "pictures": {},
        "attachments": (),
        "message_id": "<welcome-1@example.com>",
    }
    return compose(SENDER, **{**ordinary, **given})


def attempt(**given: Any) -> Letter | str:
    """Return the letter, or why it was refused."""
    try:
        return letter(**given)
    except Unusable as error:
        return str(error)


def read(content: bytes) -> EmailMessage:
    """Return the letter as another program parses it."""
    message = BytesParser(policy=default).parsebytes(content)
    assert isinstance(message, EmailMessage)
    return message


def decoded(value: str) -> str:
    """Return a header's text; the standard library's newer parser inserts spaces between encoded words."""
    return str(make_header(decode_header(value)))


def headers_of(content: bytes) -> list[str]:
    """Return the names of all headers above the body."""
    head = content.partition(b"\r\n\r\n")[0].decode()
    return [line.partition(":")[0] for line in head.split("\r\n") if not line.startswith((" ", "\t"))]


# Characters that separate lines in mail, in Python or in Unicode.
BREAKS = ["\r", "\n", "\r\n", "\0", "\t", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x7f", "\x85", "\u2028", "\u2029"]

NEWLINE = r"\r\n|\r|\n"

# Text as people and attackers write it: with line breaks, encoded words, quotes and characters of addresses.
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(BREAKS),
        st.sampled_from(
            ["=?utf-8?Q?=0D=0ABcc:_x@example.com?=", "=?utf-8?B?DQo=?=", '"', "\\", "<x@y>", ",", ";", "é", "😀"]
        ),
    ),
    max_size=12,
).map("".join)


@given(subject=TEXTS, name=TEXTS)
@example(subject="=?UTF-8?Q?=0A?=Bcc: x@example.com", name='"Ada" <eve@example.com>, x' * 8)
@example(subject=" padded ", name="Ada, Countess (of) Lovelace; " * 8)
def test_one_line_is_refused_or_arrives_as_it_was_typed(subject: str, name: str) -> None:
    made = attempt(subject=subject, name=name)
    if isinstance(made, str):
        assert re.match("the (subject|name) ", made)
        return
    assert headers_of(made.content) == [*WRITTEN, "Content-Type", "Content-Transfer-Encoding", "MIME-Version"]
    message = BytesParser(policy=compat32).parsebytes(made.content)
    phrase, _, address = message["To"].rpartition("\r\n ")
    assert (decoded(phrase), address.strip("<>")) == (name, "ada@example.com")
    assert decoded(message["Subject"]) == subject


@pytest.mark.parametrize("field", ["subject", "name"])
@pytest.mark.parametrize("break_", [*BREAKS, "\ud800", "\r\nBcc: eve@example.com"])
def test_a_line_break_or_control_character_is_refused_with_the_fields_name(field: str, break_: str) -> None:
    for text in (f"a{break_}b", f"{break_}b", f"a{break_}"):
        with pytest.raises(Unusable, match=f"^the {field} .* must be one line without control characters"):
            letter(**{field: text})


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "ada@",
        "@example.com",
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com\n",
        "ada@example.com\0",
        "ada@exam\u2028ple.com",
        "ada@example.com, eve@example.com",
        "ada@example.com eve@example.com",
        "Ada <ada@example.com>",
        "<ada@example.com>",
        "ada@example.com> SIZE=1",
        '"ada\r\n"@example.com',
        "a..b@example.com",
        ".a@example.com",
        "ada@example..com",
        "ada@-example.com",
        "ada@[127.0.0.1]",
        "ada@straße.example",
        "ada@example.com.",
        f"{'a' * 65}@example.com",
        f"ada@{'a' * 64}.com",
        f"ada@{'a.' * 130}com",
    ],
)
def test_what_is_not_one_address_is_refused(address: str) -> None:
    with pytest.raises(Unusable, match="^the address .* must be an email address such as name@example.com"):
        letter(to=address)


@given(TEXTS)
def test_no_address_can_hold_what_smtp_or_a_header_would_read_as_more(text: str) -> None:
    for address in (f"{text}@example.com", f"ada@{text}", text):
        try:
            recipient = letter(to=address).recipient
        except Unusable:
            continue
        assert not set(recipient) & set('\r\n\0 <>,;:"\\()[]')
        assert recipient.count("@") == 1


@pytest.mark.parametrize(
    "message_id", ["", "x@y", "<x>", "<x@y", "<x@y>\r\nBcc: z@y", "<x y@z>", "<x@y><z@y>", "<ü@y>", f"<{'x' * 200}@y>"]
)
def test_a_message_id_that_is_none_is_refused(message_id: str) -> None:
    with pytest.raises(Unusable, match="^the message_id .* must look like <name@domain>"):
        letter(message_id=message_id)


def test_the_longest_message_id_stays_in_one_piece() -> None:
    message_id = f"<{'x' * 150}@{'y' * 100}>"
    assert f"\r\nMessage-ID: {message_id}\r\n".encode() in letter(message_id=message_id).content


@given(text=TEXTS.map(lambda text: text.replace("\0", "")), html=st.none() | TEXTS)
def test_a_body_is_refused_or_travels_in_short_lines_of_seven_bits(text: str, html: str | None) -> None:
    made = attempt(text=text, html=html)
    if isinstance(made, str):
        assert re.match("the (text|html) must contain no control characters except tabs and line ends", made)
        return
    content = made.content
    assert content.isascii()
    assert b"\0" not in content
    # Servers disagree about a lone CR or LF, which can smuggle a second email behind the first.
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n", content)
    assert all(len(line) <= 998 for line in content.split(b"\r\n"))
    assert content.endswith(b"\r\n")
    body = read(content).get_body(("plain",))
    assert isinstance(body, EmailMessage)
    assert re.sub(NEWLINE, "\n", body.get_content()) == re.sub(NEWLINE, "\n", text).removesuffix("\n") + "\n"


@given(st.text(alphabet=string.printable + "äöü/\\:\0", max_size=120), st.binary(max_size=200))
def test_an_attachment_is_refused_by_its_name_or_arrives_under_it(name: str, content: bytes) -> None:
    made = attempt(attachments=[Attachment(name, content)])
    if isinstance(made, str):
        assert made.startswith("the attachment's name ")
        return
    (attachment,) = read(made.content).iter_attachments()
    assert (attachment.get_filename(), attachment.get_payload(decode=True)) == (name, content)


@pytest.mark.parametrize("cid", ["", "a b", "a>", "a\r\nX: y", "ü", "a@b@c", "a@"])
def test_a_pictures_name_must_fit_between_its_brackets(cid: str) -> None:
    with pytest.raises(Unusable, match="^the picture's name "):
        letter(html="<p>", pictures={cid: b"png"})


@pytest.mark.parametrize("media_type", ["pdf", "application/", "a/b\r\nX: y", "a/b; name=x"])
def test_an_attachments_type_must_be_one(media_type: str) -> None:
    with pytest.raises(Unusable, match="^the attachment's media_type "):
        letter(attachments=[Attachment("a.pdf", b"", media_type)])


def test_pictures_without_html_are_not_lost_without_a_word() -> None:
    with pytest.raises(Unusable, match="pictures need html"):
        letter(pictures={"chart": b"png"})
