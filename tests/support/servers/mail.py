"""A mail server that keeps emails, and misbehaves at the step that a test names."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

DRIP_SECONDS = 0.02

# Arguments of `misbehave`, besides a reply: hang up, never answer, answer without end, answer late.
DROP, SILENT, DRIP, LATE = "drop", "silent", "drip", "late"
LATE_SECONDS = 1.0


@dataclass(frozen=True)
class Kept:
    """An email that the server accepted."""

    sender: str
    recipients: list[str]
    content: bytes
    encrypted: bool
    user: str | None

    @property
    def message(self) -> EmailMessage:
        """Return the email as a mail program parses it."""
        message = BytesParser(policy=default).parsebytes(self.content)
        assert isinstance(message, EmailMessage)
        return message


@dataclass
class MailServer:
    """The server's address, the emails it accepted, and how it will misbehave."""

    host: str = "127.0.0.1"
    port: int = 0
    mails: list[Kept] = field(default_factory=list)
    plans: dict[str, str] = field(default_factory=dict)
    connected: set[Conversation] = field(default_factory=set)

    def misbehave(self, step: str, how: str) -> None:
        """Misbehave at `greeting`, `EHLO`, `STARTTLS`, `AUTH`, `MAIL`, `RCPT`, `DATA`, `text`, `dot` or `QUIT`."""
        self.plans[step] = how

    async def handle_DATA(self, smtp: Conversation, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Accept the email after its final dot, unless the plan is to refuse it."""
        smtp.step = "dot"
        if not self.plans.get("dot", "").startswith(("4", "5")):
            assert isinstance(envelope.content, bytes)
            granted: Any = session.auth_data
            user = granted.login.decode() if session.authenticated else None
            encrypted = smtp.transport is not None and smtp.transport.get_extra_info("ssl_object") is not None
            self.mails.append(Kept(envelope.mail_from or "", envelope.rcpt_tos, envelope.content, encrypted, user))
        return f"250 2.0.0 Ok: queued as {len(self.mails):010X}"


def _stepping(step: str) -> Any:
    """Return aiosmtpd's method for a command, which now also records the step."""
    method: Any = getattr(SMTP, f"smtp_{step}")

    @functools.wraps(method)
    async def take(self: Conversation, argument: str | None) -> None:
        self.step = step
        await method(self, argument)

    return take


class Conversation(SMTP):
    """A client's connection; every reply passes through `push`, which carries out the plans."""

    def __init__(self, server: MailServer, **options: Any) -> None:
        super().__init__(server, hostname="mail.test", **options)
        self.step = "greeting"
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._socket = transport.get_extra_info("socket")
        self._server.connected.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._server.connected.discard(self)

    def data_received(self, data: bytes) -> None:
        if self.step == "DATA" and self._server.plans.pop("text", None) == DROP:
            self.abort()
        else:
            super().data_received(data)

    async def push(self, status: Any) -> None:
        how = self._server.plans.pop(self.step, None)
        if how is None:
            await super().push(status)
        elif how == DROP:
            self.abort()
            raise ConnectionResetError
        elif how == SILENT:
            await asyncio.get_running_loop().create_future()
        elif how == LATE:
            await asyncio.sleep(LATE_SECONDS)
            await super().push(status)
        elif how == DRIP:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(b"250-")
            while True:
                self.transport.write(b"x")
                await asyncio.sleep(DRIP_SECONDS)
        else:
            await super().push(how)

    def abort(self) -> None:
        """Hang up without a reply.

        A TLS transport that is closing waits for the client's close_notify, and Python 3.11.2 cannot abort it any more:
        so
        shut the socket below it down.
        """
        if not isinstance(self.transport, asyncio.Transport):
            return
        if self.transport.is_closing():
            with suppress(OSError):  # the client has hung up already
                self._socket.shutdown(socket.SHUT_RDWR)
        else:
            self.transport.abort()


for step in ("EHLO", "HELO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "RSET", "QUIT"):
    setattr(Conversation, f"smtp_{step}", _stepping(step))


@contextmanager
def mail_server(
    *,
    context: ssl.SSLContext | None = None,
    implicit: bool = False,
    login: tuple[str, str] | None = None,
    international: bool = True,
) -> Iterator[MailServer]:
    """Start a server: plain, with STARTTLS if there is a context, or encrypted from the beginning (`implicit`)."""
    server = MailServer()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def check(_: object, __: object, ___: object, ____: str, given: LoginPassword) -> AuthResult:
        return AuthResult(
            success=login == (given.login.decode(), given.password.decode()), handled=False, auth_data=given
        )

    def conversation() -> Conversation:
        return Conversation(
            server,
            loop=loop,
            enable_SMTPUTF8=international,
            tls_context=None if implicit else context,
            auth_require_tls=not implicit,
            authenticator=check if login else None,
        )

    def carried_out(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    listener = carried_out(_listen(loop, conversation, context if implicit else None))
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        carried_out(_close(listener, server))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _listen(loop: asyncio.AbstractEventLoop, factory: Any, context: ssl.SSLContext | None) -> asyncio.Server:
    return await loop.create_server(factory, "127.0.0.1", 0, ssl=context)


async def _close(listener: asyncio.Server, server: MailServer) -> None:
    """Hang up on all clients, and wait until everything is closed."""
    listener.close()
    while server.connected:
        for conversation in list(server.connected):
            conversation.abort()
        await asyncio.sleep(0)
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
