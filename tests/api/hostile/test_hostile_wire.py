"""Hostile bytes sent to a real server: refused with a problem, and no row of any table changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.api.conftest import PROBLEM, There
from tests.api.serving import JSON, Heard, Server, chunked, heard, request, send, served
from tests.support.digest import Digest

NOOP = b'{"job_type": "noop"}'
LIMIT = 256 * 1024

KEY = "rc_key"  # a placeholder for the right one


@pytest.fixture(scope="module")
def server(
    module_url: str, keys: dict[str, str], there: There, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("api")
    with served({"DATABASE_URL": module_url, "PATH": ""}, folder, ROWCALL_API_WORKERS="1") as server:
        yield server
        assert "Traceback" not in server.log.read_text(), "no request may cause a traceback"


def post(*headers: str, body: bytes = NOOP) -> bytes:
    return request("POST", "/v1/runs", KEY, *headers, body=body)


def get(target: str = "/v1/definitions", *headers: str) -> bytes:
    return request("GET", target, KEY, *headers)


def posted_chunked(body: bytes, *headers: str) -> bytes:
    return request("POST", "/v1/runs", KEY, JSON, "Transfer-Encoding: chunked", *headers) + body


REFUSED: dict[str, tuple[int, bytes]] = {
    "a body too large": (413, post(JSON, body=b" " * (LIMIT + 1))),
    "a body said to be too large": (413, request("POST", "/v1/runs", KEY, JSON, "Content-Length: 999999999999") + NOOP),
    "a body too large in chunks": (413, posted_chunked(chunked(NOOP, *[b" " * 4096] * 64))),
    "chunks without an end": (413, posted_chunked((b"1000\r\n" + b" " * 4096 + b"\r\n") * 65)),
    "a chunk too large": (413, posted_chunked(b"fffffffff\r\n" + b" " * (2 * LIMIT))),
    "a chunk whose size is none": (400, posted_chunked(b"zz\r\n{}\r\n0\r\n\r\n")),
    "a chunk of negative size": (400, posted_chunked(b"-1\r\n{}\r\n0\r\n\r\n")),
    "a chunk longer than it says": (400, posted_chunked(b"2\r\n{}{}\r\n0\r\n\r\n")),
    "a chunk size as long as a book": (400, posted_chunked(b"0" * 20_000)),
    "a trailer that is none": (400, posted_chunked(b"2\r\n{}\r\n0\r\nContent-Length: 1\r\n\r\n")),
    "a length and chunks": (400, posted_chunked(chunked(NOOP), "Content-Length: 20")),
    "two lengths": (400, request("POST", "/v1/runs", KEY, JSON, "Content-Length: 20", "Content-Length: 2") + NOOP),
    "a length below zero": (400, request("POST", "/v1/runs", KEY, JSON, "Content-Length: -1") + NOOP),
    "a length in words": (400, request("POST", "/v1/runs", KEY, JSON, "Content-Length: many") + NOOP),
    "a length of 400 digits": (413, request("POST", "/v1/runs", KEY, JSON, f"Content-Length: {'9' * 400}") + NOOP),
    "a length of 5,000 digits": (400, request("POST", "/v1/runs", KEY, JSON, f"Content-Length: {'9' * 5000}") + NOOP),
    "an unknown coding": (501, request("POST", "/v1/runs", KEY, JSON, "Transfer-Encoding: zip") + NOOP),
    "a coding without chunks": (400, request("POST", "/v1/runs", KEY, JSON, "Transfer-Encoding: gzip") + NOOP),
    "chunks in chunks": (400, posted_chunked(chunked(NOOP), "Transfer-Encoding: chunked")),
    "a coding before chunks": (
        501,
        request("POST", "/v1/runs", KEY, JSON, "Transfer-Encoding: gzip, chunked") + chunked(NOOP),
    ),
    "a compressed body": (415, post(JSON, "Content-Encoding: gzip", body=b"\x1f\x8b\x08" + b"\0" * 20)),
    "no content type": (415, post()),
    "two content types": (400, post(JSON, JSON)),
    "an idempotency key twice": (422, post(JSON, "Idempotency-Key: mine", "Idempotency-Key: mine")),
    "two idempotency keys": (422, post(JSON, "Idempotency-Key: mine", "Idempotency-Key: other")),
    "an empty idempotency key": (422, post(JSON, "Idempotency-Key:")),
    "an idempotency key in Latin-1": (422, post(JSON, "Idempotency-Key: \xe4")),
    "a null in an idempotency key": (400, post(JSON, "Idempotency-Key: a\0b")),
    "a bell in an idempotency key": (400, post(JSON, "Idempotency-Key: a\x07b")),
    "an authorization twice": (401, get("/v1/definitions", f"Authorization: Bearer {KEY}")),
    "a header of 20,000 bytes": (431, get("/v1/definitions", f"X-Long: {'x' * 20_000}")),
    "a thousand headers": (431, get("/v1/definitions", *(f"X-{number}: x" for number in range(1_000)))),
    "a header without a colon": (400, get("/v1/definitions", "Strange")),
    "a header name with a blank": (400, get("/v1/definitions", "Strange : 1")),
    "a folded header": (400, get("/v1/definitions", "Strange: 1", " 2")),
    "two hosts": (400, get("/v1/definitions", "Host: there")),
    "an expectation": (417, get("/v1/definitions", "Expect: miracles")),
    "a line of 20,000 bytes": (414, get("/v1/definitions?q=" + "x" * 20_000)),
    "an id of 400 digits": (404, get("/v1/runs/1" + "0" * 400)),
    "an id of 5,000 digits": (404, get("/v1/runs/" + "9" * 5_000)),
    "a null in a path": (404, get("/v1/definitions/%00")),
    "a bare null in a path": (400, get("/v1/definitions/\0")),
    "a blank in a path": (400, get("/v1/definitions/a b")),
    "Latin-1 in a path": (400, get("/v1/definitions/\xe4")),
    "broken percent codes in a path": (404, get("/v1/definitions/%zz%")),
    "a null in a query": (422, get("/v1/definitions/nightly/occurrences?limit=%00")),
    "two slashes": (404, get("/v1//definitions")),
    "a way up": (404, get("/v1/../v1/definitions")),
    "a star": (404, request("OPTIONS", "*", KEY)),
    "another server's path": (404, get("http://there.example/v2")),
    "a tunnel": (405, request("CONNECT", "/v1/runs/1", KEY)),
    "a trace": (405, request("TRACE", "/v1/runs/1", KEY)),
    "an unknown method": (405, request("BREW", "/v1/runs/1", KEY)),
    "a method in lower case": (400, request("get", "/v1/runs/1", KEY)),
    "no version": (400, b"GET /v1/runs/1\r\n\r\n"),
    "a version to come": (400, b"GET /v1/runs/1 HTTP/9.9\r\n\r\n"),
    "HTTP/2 without asking": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "lines ended as on Unix": (400, get().replace(b"\r\n", b"\n")),
    "nothing at all": (400, b"\r\n\r\n\r\n"),
    "a beginning of TLS": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    "noise": (400, bytes(range(256)) + b"\r\n\r\n"),
}


def ask(server: Server, raw: bytes, keys: dict[str, str]) -> Heard:
    return server.ask(raw.replace(KEY.encode(), keys["admin"].encode()))


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_proper_request_is_refused_as_a_problem(
    server: Server, digest: Digest, keys: dict[str, str], what: str
) -> None:
    status, raw = REFUSED[what]
    before = digest()
    refused = ask(server, raw, keys)
    assert (refused.status, refused.headers.get("Content-Type")) == (status, PROBLEM), refused
    assert refused.told["status"] == status
    assert digest() == before
    assert ask(server, get(), keys).status == 200


# A request that gunicorn refuses has no request id and no access line.
REACHES_THE_APPLICATION = (
    *("a body too large", "chunks without an end", "a chunk whose size is none", "a chunk longer than it says"),
    *("a compressed body", "an authorization twice", "a null in a path", "a tunnel", "an unknown method"),
)


@pytest.mark.parametrize("what", REACHES_THE_APPLICATION)
def test_what_reaches_the_application_has_one_access_line(server: Server, keys: dict[str, str], what: str) -> None:
    status, raw = REFUSED[what]
    before = len(server.log.read_bytes())
    request_id = ask(server, raw, keys).headers["X-Request-Id"]
    written = server.log.read_bytes()[before:].decode()
    [line] = [line for line in map(json.loads, written.splitlines()) if line["event"] == "api answered"]
    assert (line["status"], line["request_id"]) == (status, request_id)
    assert keys["admin"].split("_")[2] not in written


def test_a_body_of_just_256_kib_is_read_whether_its_length_is_told_or_not(server: Server, keys: dict[str, str]) -> None:
    body = NOOP + b" " * (LIMIT - len(NOOP))
    for raw in (post(JSON, body=body), posted_chunked(chunked(body[:100_000], body[100_000:]))):
        assert ask(server, raw, keys).status == 202


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(server: Server, keys: dict[str, str]) -> None:
    head = request("POST", "/v1/runs", keys["admin"], JSON, "Expect: 100-continue", f"Content-Length: {len(NOOP)}")
    with server.connect() as connection:
        send(connection, head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        send(connection, NOOP)
        assert heard(connection).status == 202
    for raw in (head + NOOP, head.replace(b"HTTP/1.1", b"HTTP/1.0") + NOOP):
        assert ask(server, raw, keys).status == 202


@pytest.mark.parametrize(
    "headers",
    [
        ("SCRIPT_NAME: /other",),
        ("SCRIPT_NAME: /v1",),
        ("PATH_INFO: /healthz",),
        ("X-Forwarded-Proto: https", "X-Forwarded-Ssl: off"),
        ("X-Forwarded-Proto: gopher", "X-Forwarded-Protocol: ssl"),
        ("Idempotency_Key: mine",),
        ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    ],
)
def test_no_header_makes_a_path_another_one_or_a_request_more_trusted(
    server: Server, keys: dict[str, str], headers: tuple[str, ...]
) -> None:
    answer = ask(server, get("/v1/runs/1", *headers), keys)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")


def statuses(server: Server, raw: bytes, keys: dict[str, str]) -> list[bytes]:
    """Return the statuses of all responses on one connection, up to its end."""
    with server.connect() as connection:
        send(connection, raw.replace(KEY.encode(), keys["admin"].encode()))
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))
    return re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answers)


def test_requests_sent_one_behind_the_other_are_answered_one_by_one(server: Server, keys: dict[str, str]) -> None:
    requests = [get("/v1/runs/1"), post(JSON, body=b"{"), get("/v1/nowhere"), get("/healthz", "Connection: close")]
    assert statuses(server, b"".join(requests), keys) == [b"200", b"400", b"404", b"200"]


def test_what_stands_behind_a_body_that_cannot_be_read_is_no_request(server: Server, keys: dict[str, str]) -> None:
    for broken, status in ((b"zz\r\n", b"400"), (b"5\r\n{}", b"400"), (chunked(b" " * 4 * LIMIT), b"413")):
        hidden = post(JSON, "Connection: close")
        assert statuses(server, posted_chunked(broken) + hidden, keys) == [status]
