"""One HTTP exchange: a request to an address that was chosen beforehand, and its answer.

The standard library's client is enough, and predictable: it follows no redirect, reads no proxy from the environment,
retries nothing, decompresses nothing, and accepts a connection that was opened for it.  (urllib3 has retries, redirects
and a pool, which would have to be switched off, and its timeouts restart with every byte.)
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from email.utils import parsedate_to_datetime
from time import time

from rowcall.base.endpoints import HttpUrl
from rowcall.base.errors import OutcomeUnknown, Unavailable
from rowcall_worker.gateways.sockets import Address, Deadline, connect, secure
from rowcall_worker.gateways.words import describe

# No server may postpone a run for longer than this.
LONGEST_RETRY_AFTER_SECONDS = 86400.0


class Answer:
    """The answer: its head, and the part of its body that is read."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status: int = response.status

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the server wants the request again; None means the backoff of the job type."""
        text = (self._response.headers.get("Retry-After") or "").strip()
        try:
            seconds = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time()
        except (ValueError, OverflowError):
            return None
        return min(seconds, LONGEST_RETRY_AFTER_SECONDS) if seconds > 0 else None

    def read(self, cap: int) -> bytes:
        """At most this many bytes of the body; fewer if it is cut off or late."""
        body = b""
        try:
            while len(body) < cap and (more := self._response.read1(cap - len(body))):
                body += more
        except (OSError, http.client.HTTPException):
            pass
        return body


@contextmanager
def exchange(
    url: HttpUrl,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    body: bytes,
    deadline: Deadline,
    context: ssl.SSLContext,
    method: str = "POST",
) -> Iterator[Answer]:
    """Send the request and yield its answer, which can be read until the end of the block.

    Raises Unavailable if the request was not sent completely, so that the other side cannot have acted on it, and
    OutcomeUnknown if it was sent completely and no answer arrived.
    """
    try:
        connection = http.client.HTTPConnection(url.host, url.port)
        connection.auto_open = 0
        connection.sock = _connect(url, addresses, deadline, context)
    except OSError as error:
        raise Unavailable(f"{url.authority} could not be reached: {describe(error)}") from error
    with closing(connection):
        try:
            connection.request(method, url.target, body, {"Host": url.authority, "Connection": "close", **headers})
        except OSError as error:
            raise Unavailable(f"{url.authority} did not receive the whole request: {describe(error)}") from error
        try:
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise OutcomeUnknown(
                f"{url.authority} received the request and did not answer: {describe(error)}"
            ) from error
        with response:
            yield Answer(response)


def _connect(url: HttpUrl, addresses: Sequence[Address], deadline: Deadline, context: ssl.SSLContext) -> socket.socket:
    connection = connect(addresses, url.port, deadline)
    return secure(connection, context, url.host) if url.secure else connection
