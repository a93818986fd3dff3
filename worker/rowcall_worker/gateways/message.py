"""An email as bytes: the headers are written here, the body by the standard library.

The headers contain what others have typed (names, subjects), and in several versions of Python that are in use, the
standard library has lost quotes or allowed line breaks when it folded them.  So the few headers are written here: ASCII
text is left plain, and other text becomes encoded words of fixed length.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from rowcall.base.endpoints import Mailbox, mail_address
from rowcall.base.errors import Unusable
from rowcall_worker.gateways.attachment import Attachment

# All content fits into 7 bits, so that no server on the way has a reason to change it.
POLICY = SMTP.clone(cte_type="7bit")

LONGEST_LINE_CHARACTERS = 255

# 45 bytes become 60 characters of base64, and with its prefix and suffix a line of less than 76.
ENCODED_BYTES = 45

# Control characters, unpaired surrogates, and Unicode's line and paragraph separators.
NEVER_IN_A_LINE = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True)
class Letter:
    """An email ready to be sent: the envelope, and what is inside."""

    sender: str
    recipient: str
    message_id: str
    content: bytes

    @property
    def international(self) -> bool:
        """Whether only servers that support SMTPUTF8 can accept the email."""
        return not (self.sender + self.recipient).isascii()


def compose(
    sender: Mailbox,
    *,
    to: str,
    name: str,
    subject: str,
    text: str,
    html: str | None,
    pictures: Mapping[str, bytes],
    attachments: Sequence[Attachment],
    message_id: str,
) -> Letter:
    """A letter to one person; raises Unusable, which names the field, for a value that an email cannot have."""
    recipient = _recipient(to, name)
    if not re.fullmatch(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,150}@[A-Za-z0-9.-]{1,100}>", message_id):
        raise Unusable(f"the message_id {message_id!r} must look like <name@domain>")
    head = (
        ("From", _mailbox(sender)),
        ("To", _mailbox(recipient)),
        ("Subject", _words(_line("subject", subject))),
        ("Date", format_datetime(datetime.now(UTC))),
        ("Message-ID", message_id),
        ("Auto-Submitted", "auto-generated"),
    )
    lines = "".join(f"{field}: {value}\r\n" for field, value in head)
    content = lines.encode() + _body(text, html, pictures, attachments).as_bytes()
    return Letter(sender.address, recipient.address, message_id, content)


def _recipient(to: str, name: str) -> Mailbox:
    try:
        return Mailbox(mail_address(to), _line("name", name))
    except ValueError as error:
        raise Unusable(f"the address {to[:320]!r} must be {error}") from None


def _body(
    text: str, html: str | None, pictures: Mapping[str, bytes], attachments: Sequence[Attachment]
) -> EmailMessage:
    """Text and HTML as alternatives, pictures beside the HTML, attachments beside both."""
    body = EmailMessage(POLICY)
    body.set_content(_paragraphs("text", text))
    if pictures and html is None:
        raise Unusable("pictures need html")
    if html is not None:
        body.add_alternative(_paragraphs("html", html), subtype="html")
        page = body.get_payload(1)
        assert isinstance(page, EmailMessage)
        for cid, png in pictures.items():
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}(@[A-Za-z0-9.-]{1,60})?", cid):
                raise Unusable(
                    f"the picture's name {cid!r} must be 1 to 60 of the characters A-Z a-z 0-9 . _ -,"
                    " optionally followed by @ and a domain"
                )
            name = cid.partition("@")[0]
            page.add_related(png, "image", "png", cid=f"<{cid}>", disposition="inline", filename=f"{name}.png")
    for attachment in attachments:
        if not re.fullmatch(r"\w[\w.() -]{0,99}(?<! )", attachment.name):
            raise Unusable(
                f"the attachment's name {attachment.name!r} must be 1 to 100 letters, digits, spaces or"
                " . _ - ( ), starting with a letter, a digit or _"
            )
        if not re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", attachment.media_type):
            raise Unusable(f"the attachment's media_type {attachment.media_type!r} must look like application/pdf")
        main, _, sub = attachment.media_type.partition("/")
        body.add_attachment(attachment.content, main, sub, filename=attachment.name)
    return body


def _line(field: str, text: str) -> str:
    """One line of text, safe in a header."""
    if len(text) > LONGEST_LINE_CHARACTERS:
        raise Unusable(f"the {field} has {len(text)} characters; at most {LONGEST_LINE_CHARACTERS} are allowed")
    for letter in text:
        if unicodedata.category(letter) in NEVER_IN_A_LINE:
            raise Unusable(f"the {field} {text!r} must be one line without control characters, but contains {letter!r}")
    return text


def _paragraphs(field: str, text: str) -> str:
    """Text of any length, safe in the body."""
    for letter in text:
        if unicodedata.category(letter) in {"Cc", "Cs"} and letter not in "\t\r\n":
            raise Unusable(
                f"the {field} must contain no control characters except tabs and line ends, but contains {letter!r}"
            )
    return text


def _mailbox(mailbox: Mailbox) -> str:
    """The name and the address.  Only a name that consists of letters, digits and spaces is safe without encoding."""
    if not mailbox.name:
        return mailbox.address
    plain = re.fullmatch(r"[A-Za-z0-9]+( [A-Za-z0-9]+)*", mailbox.name) and len(mailbox.name) <= 60
    return f"{mailbox.name if plain else _encoded(mailbox.name)}\r\n <{mailbox.address}>"


def _words(text: str) -> str:
    """Free text for a header; ASCII text that looks like an encoded word, or is too long for a line, is encoded too."""
    plain = re.fullmatch(r"[ -~]{0,60}", text) and "=?" not in text and text == text.strip()
    return text if plain else _encoded(text)


def _encoded(text: str) -> str:
    """Encoded words (RFC 2047), one to a line."""
    return "\r\n ".join(f"=?utf-8?B?{base64.b64encode(piece).decode()}?=" for piece in _pieces(text))


def _pieces(text: str) -> Iterator[bytes]:
    """Pieces of the text as bytes; no piece ends in the middle of a character."""
    piece = b""
    for letter in text:
        if len(piece) + len(letter.encode()) > ENCODED_BYTES:
            yield piece
            piece = b""
        piece += letter.encode()
    yield piece
