"""Mail by SMTP: one connection for each email; every step knows whether the server may have accepted the email."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from contextlib import closing, suppress
from functools import cached_property

from rowcall.base.endpoints import Mailbox, SmtpServer
from rowcall.base.errors import GatewayError, OutcomeUnknown, Refused, Unavailable
from rowcall_worker.gateways.mail import Mail
from rowcall_worker.gateways.message import Letter
from rowcall_worker.gateways.sockets import Deadline, TimedSocket, connect, resolve, secure, trusting_the_system
from rowcall_worker.gateways.words import describe, excerpt

# How long a mail server may take for one command.  Once it has the whole email, it may take all the time that is left,
# because giving up then could send the email twice.
STEP_SECONDS = 30.0

# The server has the email; do not wait for its goodbye.
GOODBYE_SECONDS = 1.0

# The reply that says that the whole email was accepted.
TAKEN = set(range(200, 300))

# Refusals of our login, not of the email: they end when ROWCALL_SMTP_URL is corrected.
ABOUT_US = frozenset({530, 534, 535, 538})


class SmtpMail(Mail):
    """Emails to a mail server, one conversation each, in the steps of RFC 5321."""

    def __init__(self, server: SmtpServer, sender: Mailbox, *, timeout: float) -> None:
        super().__init__(sender)
        self._server = server
        self._timeout = timeout

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return trusting_the_system()

    def _deliver(self, letter: Letter) -> str:
        """Deliver the email. Until the final dot is sent, nothing has happened; after it, the email may be on its way.

        All errors of smtplib are OSErrors, except the ValueErrors that it raises for unreadable answers.
        """
        deadline = Deadline(self._timeout, STEP_SECONDS)
        try:
            smtp = self._greet(deadline)
        except (OSError, ValueError) as error:
            raise Unavailable(f"the mail server {self._server.host} could not be used: {describe(error)}") from error
        with closing(smtp):
            try:
                self._hand_over(smtp, letter)
            except (OSError, ValueError) as error:
                raise Unavailable(
                    f"the mail server {self._server.host} closed the connection before it had the whole email:"
                    f" {describe(error)}"
                ) from error
            deadline.patiently()
            try:
                reply = smtp.getreply()
            except (OSError, ValueError) as error:
                raise OutcomeUnknown(
                    f"the mail server {self._server.host} has the email, but did not answer: {describe(error)}"
                ) from error
            _expect(TAKEN, reply, "the email", nonsense=OutcomeUnknown)
            deadline.shorten(GOODBYE_SECONDS)
            with suppress(OSError, ValueError):
                smtp.docmd("QUIT")
        return f"{excerpt(reply[1])} {letter.message_id}"

    def _greet(self, deadline: Deadline) -> smtplib.SMTP:
        """Connect, encrypt and log in. An error here is not about the email, so it is tried again."""
        server = self._server
        plain = connect(resolve(server.host, server.port, deadline), server.port, deadline)
        smtp = smtplib.SMTP(local_hostname=_literal(plain))
        smtp.sock = secure(plain, self._context, server.host) if server.tls else plain
        try:
            _expect({220}, smtp.getreply(), "the connection", refusal=Unavailable)
            _expect({250}, smtp.ehlo(), "EHLO", refusal=Unavailable)
            if server.starttls:
                self._encrypt(smtp, plain)
            if server.user:
                self._log_in(smtp)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _encrypt(self, smtp: smtplib.SMTP, plain: TimedSocket) -> None:
        if not smtp.has_extn("starttls"):
            raise Unavailable(
                f"nothing was sent: the mail server {self._server.host} offers no STARTTLS; if it needs no encryption,"
                " add ?starttls=never to ROWCALL_SMTP_URL"
            )
        _expect({220}, smtp.docmd("STARTTLS"), "STARTTLS", refusal=Unavailable)
        smtp.sock = secure(plain, self._context, self._server.host)
        # Anything received before the encryption could be forged, and is dropped.
        smtp.file = None
        _expect({250}, smtp.ehlo(), "EHLO", refusal=Unavailable)

    def _log_in(self, smtp: smtplib.SMTP) -> None:
        try:
            smtp.login(self._server.user, self._server.password)
        except smtplib.SMTPAuthenticationError as error:
            told = excerpt(error.smtp_error if isinstance(error.smtp_error, bytes) else error.smtp_error.encode())
            raise Unavailable(
                f"the mail server {self._server.host} refused the user and password in ROWCALL_SMTP_URL:"
                f" {error.smtp_code} {told}"
            ) from None

    def _hand_over(self, smtp: smtplib.SMTP, letter: Letter) -> None:
        """Send the envelope and the content; the server has the email once its last line, a dot, has been sent."""
        options = ""
        if letter.international:
            if not smtp.has_extn("smtputf8"):
                raise Refused(
                    f"the mail server {self._server.host} does not accept an address like {letter.recipient} (SMTPUTF8)"
                )
            smtp.command_encoding = "utf-8"
            options = " SMTPUTF8"
        if smtp.has_extn("size"):
            options += f" SIZE={len(letter.content)}"
        _expect({250}, smtp.docmd("MAIL", f"FROM:<{letter.sender}>{options}"), "the sender")
        _expect({250, 251}, smtp.docmd("RCPT", f"TO:<{letter.recipient}>"), f"the recipient {letter.recipient}")
        _expect({354}, smtp.docmd("DATA"), "DATA")
        assert smtp.sock is not None
        smtp.sock.sendall(re.sub(rb"(?m)^\.", b"..", letter.content) + b".\r\n")


def _expect(
    expected: set[int],
    reply: tuple[int, bytes],
    step: str,
    refusal: type[GatewayError] = Refused,
    nonsense: type[GatewayError] = Unavailable,
) -> None:
    """Raise the error for an unexpected reply: 4xx means try later, 5xx never, and anything else is not SMTP."""
    code, told = reply
    if code in expected:
        return
    kind = nonsense
    if 400 <= code < 500 or code in ABOUT_US:
        kind = Unavailable
    elif 500 <= code < 600:
        kind = refusal
    raise kind(f"the mail server answered {step} with {code} {excerpt(told)}")


def _literal(connection: socket.socket) -> str:
    """The name for EHLO: the address, because the machine's own name may be wrong."""
    address = connection.getsockname()[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"
