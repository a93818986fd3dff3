"""The incoming requests of a connection: gunicorn's parser, fed with bytes that have already been received.

This module only finds the end of a request, and whether the client waits for `100 Continue`.  gunicorn parses the same
bytes again; if it disagrees, it runs out of bytes, and the connection is closed.
"""

from __future__ import annotations

import re
from typing import Any

from gunicorn.config import Config
from gunicorn.http import RequestParser
from gunicorn.http.body import LengthReader
from gunicorn.http.errors import (
    InvalidHTTPVersion,
    InvalidRequestLine,
    LimitRequestHeaders,
    LimitRequestLine,
    NoMoreData,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.unreader import Unreader
from werkzeug.exceptions import RequestEntityTooLarge

# The end of a head, or something that no head contains: a bare line feed, or a control character (as in TLS).
HEAD_ENDS = re.compile(rb"\r\n\r\n|(?<!\r)\n|[^\t\r\n -~\x80-\xff]")
LINE_END = b"\r\n"
SECTION_END = b"\r\n\r\n"

# This header is removed, because this worker answers it; gunicorn would answer it again when the body is complete.
EXPECT = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)

# gunicorn would also accept HTTP/1.9.
VERSIONS = ((1, 0), (1, 1))

# Enough for a hundred ordinary headers.
HEAD_BYTES = 64 * 1024
# The line with a chunk's size and extensions, or a trailer; the same limit as in gunicorn.
CHUNK_LINE_BYTES = 8190

# A body in chunks of one byte each is six times as long as its content.
CHUNKED_TIMES = 8

# Returned instead of the body's end if the body is too large.
TOO_LARGE = -1


class Received(Unreader):
    """The bytes of one request.  Reading them never waits for the network."""

    why_no_more: Exception | None = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Raise instead of reading from the network (gunicorn's hook)."""
        raise self.why_no_more or NoMoreData()


class IncomingRequests(RequestParser):
    """gunicorn's parser for a connection, and the bytes that it has not parsed yet."""

    def __init__(self, config: Config, client: Any, body_bytes: int) -> None:
        super().__init__(config, (), client)
        self.unreader: Received = Received()
        self._body_bytes = body_bytes
        self._data = bytearray()
        self._in_body = False
        self._expects_continue = False
        self._searched = 0  # where to continue searching for the end of the head, or for the next chunk
        self._chunk_bytes = 0
        self._refused: Exception | None = None

    def __next__(self) -> Request:
        """Return the request that has arrived, or raise its error (gunicorn's hook)."""
        self._in_body, self._searched, self._chunk_bytes = False, 0, 0
        if self._refused:
            raise self._refused
        assert self.mesg is not None
        return self.mesg

    def finish_body(self, deadline: float | None = None, max_bytes: int | None = None) -> bool:  # type: ignore[override]
        """Return whether another request may follow (gunicorn's hook)."""
        try:
            return self.unreader.why_no_more is None and bool(super().finish_body(deadline, max_bytes))
        except (OSError, ParseException):
            return False

    @property
    def held(self) -> int:
        """The number of bytes that this parser holds."""
        return len(self._data) + self.unreader.buf.getbuffer().nbytes

    @property
    def begun(self) -> bool:
        """Whether part of the next request has arrived."""
        return self._in_body or bool(self._data)

    def receive(self, data: bytes) -> None:
        """Store received bytes."""
        self._data += data

    def arrived(self) -> bool:
        """Return whether the next request is complete or already known to be wrong."""
        try:
            return (self._in_body or self._head_arrived()) and self._body_arrived()
        except Exception as refused:  # raised again in the thread that responds
            self._refused = refused
            return True

    def asks_for(self, path: str) -> bool:
        """Return whether the request that has arrived is for this path."""
        request: Any = self.mesg
        return self._refused is None and request.path == path

    def expects_continue(self) -> bool:
        """Return whether the client waits for `100 Continue`; True only once."""
        expected = self._in_body and self._expects_continue
        self._expects_continue = False
        return expected

    def _head_arrived(self) -> bool:
        """Return whether the head has arrived; if so, gunicorn has parsed it."""
        found = HEAD_ENDS.search(self._data, self._searched)
        length = found.end() if found else len(self._data)
        limit = self.cfg.limit_request_line
        if length > limit + len(LINE_END) and self._data.find(LINE_END, 0, limit + len(LINE_END)) < 0:
            raise LimitRequestLine(length, limit)
        if length > HEAD_BYTES:
            raise LimitRequestHeaders("the head is too long")
        if found is None:
            self._searched = max(0, length - len(SECTION_END) + 1)
            return False
        if found.group() != SECTION_END:
            raise InvalidRequestLine("invalid character in the request head")
        head, expected = EXPECT.subn(b"", self._data[:length])
        self._data[:length] = head
        self._give(len(head))
        request: Any = super().__next__()
        if request.version not in VERSIONS:
            raise InvalidHTTPVersion(request.version)
        # gunicorn would also accept compressed chunks, and pass them on compressed.
        if any(name == "TRANSFER-ENCODING" and value.strip().lower() != "chunked" for name, value in request.headers):
            raise UnsupportedTransferCoding("only chunked")
        # RFC 9110: ignore Expect in HTTP/1.0.
        self._expects_continue = expected > 0 and request.version != (1, 0)
        self._in_body, self._searched = True, 0
        return True

    def _body_arrived(self) -> bool:
        """Return whether the body has arrived, or is too large."""
        request: Any = self.mesg
        reader = request.body.reader
        end = self._length_end(reader.length) if isinstance(reader, LengthReader) else self._chunks_end()
        if end is None:
            return False
        if end == TOO_LARGE:
            self.unreader.why_no_more = RequestEntityTooLarge()
        else:
            self._give(end)
        return True

    def _length_end(self, length: int) -> int | None:
        if length > self._body_bytes:
            return TOO_LARGE
        return length if len(self._data) >= length else None

    def _chunks_end(self) -> int | None:
        """Skip the chunks that have arrived completely. gunicorn reports malformed ones."""
        data, malformed = self._data, len(self._data)
        while (line := data.find(LINE_END, self._searched)) >= 0:
            size = _chunk_size(data[self._searched : line])
            if size is None:
                return malformed
            if size == 0:
                end = data.find(SECTION_END, line)
                return end + len(SECTION_END) if end >= 0 else malformed if len(data) - line > HEAD_BYTES else None
            end = line + len(LINE_END) + size + len(LINE_END)
            if self._chunk_bytes + size > self._body_bytes or end > CHUNKED_TIMES * self._body_bytes:
                return TOO_LARGE
            if len(data) < end:
                return None
            if not data.endswith(LINE_END, 0, end):
                return malformed
            self._searched, self._chunk_bytes = end, self._chunk_bytes + size
        return malformed if len(data) - self._searched > CHUNK_LINE_BYTES else None

    def _give(self, end: int) -> None:
        """Let gunicorn read this many bytes."""
        self.unreader.unread(bytes(self._data[:end]))
        del self._data[:end]


def _chunk_size(line: bytearray) -> int | None:
    digits = line.partition(b";")[0]
    try:
        return int(digits, 16) if digits.strip(b" \t").isalnum() else None
    except ValueError:
        return None
