"""Hostile bodies and keys: refused with a problem that names the error, and no row of any table changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.api.conftest import Call, invalid, told

JSON = "application/json"

DEEP = 50_000
DIGITS = 5_000


def posted(body: str | bytes) -> dict[str, Any]:
    return {"data": body, "content_type": JSON}


def run_with(**fields: Any) -> bytes:
    return json.dumps({"job_type": "noop", "payload": {}, **fields}).encode()


def run_text(field: str, value: str) -> str:
    """Return the body of a run request with one field written as no JSON library would write it."""
    others = "" if field == "job_type" else '"job_type": "noop", '
    return f'{{{others}"{field}": {value}}}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b'{"job_type": "noop"',
        b'{"job_type": "noop",}',
        b'{"job_type": "noop"} {}',
        b"{'job_type': 'noop'}",
        b'{"job_type": "no\nop"}',
        b'{"job_type": "\\x"}',
        b'{"job_type": "noop", "priority": 01}',
        b'{"job_type": "noop", "priority": .5}',
        b'{"job_type": "noop", "priority": +1}',
        b'{"job_type": "noop" /* comment */}',
        b'{"job_type": "\xff"}',
        b'{"job_type": "\xed\xa0\x80"}',
        b'{"job_type": "\xc0\x80"}',
        b'\xef\xbb\xbf{"job_type": "noop"}',
        '{"job_type": "noop"}'.encode("utf-16"),
        '{"job_type": "noop"}'.encode("utf-16-le"),
        '{"job_type": "noop"}'.encode("utf-32"),
        b"\x00",
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"":' * DEEP + b"1" + b"}" * DEEP,
        b'[{"a":' * (DEEP // 2) + b"1" + b"}]" * (DEEP // 2),
        run_with(payload={"a": json.loads("[" * 31 + "]" * 31)}),
        # Many unterminated strings: scanned once, not once for each of them.
        b'"\\' * 100_000,
    ],
)
def test_a_body_that_is_no_json_within_bounds_is_a_bad_request(refused: Call, body: bytes) -> None:
    assert told(refused("POST", "/v1/runs", 400, **posted(body)))["detail"].startswith("the body ")


@pytest.mark.parametrize("body", [b"null", b"true", b"1", b'"noop"', b"[]", b'[{"job_type": "noop"}]'])
def test_a_body_that_is_no_object_is_refused(refused: Call, body: bytes) -> None:
    refused("POST", "/v1/runs", 422, "", **posted(body))


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("job_type", r'"no\u0000op"', "contains a null character"),
        ("queue", r'"\u0000"', "contains a null character"),
        ("run_at", r'"2030-01-01T00:00:00Z\u0000"', "contains a null character"),
        ("payload", r'{"a": {"b": ["\u0000"]}}', "a.b.0: contains a null character"),
        ("payload", r'{"a\u0000b": 1}', "has a field name that contains a null character"),
        ("payload", r'{"a": "\ud800"}', "a: contains half of a surrogate pair"),
        ("payload", r'{"a": "\udc00\ud800"}', "a: contains half of a surrogate pair"),
        ("payload", r'{"\udfff": 1}', "has a field name that contains half of a surrogate pair"),
        ("job_type", r'"\ud800"', "contains half of a surrogate pair"),
        ("priority", "NaN", "is NaN, which is not a number in JSON"),
        ("payload", '{"a": NaN}', "a: is NaN, which is not a number in JSON"),
        ("payload", '{"a": [Infinity]}', "a.0: is Infinity, which is not a number in JSON"),
        ("payload", '{"a": -Infinity}', "a: is -Infinity, which is not a number in JSON"),
        ("payload", '{"a": 1e999}', "a: is too large to be stored"),
        ("priority", "-1e999", "is too large to be stored"),
        ("priority", "9" * DIGITS, f"is a number of {DIGITS} characters"),
        ("payload", f'{{"a": {"9" * DIGITS}}}', f"a: is a number of {DIGITS} characters"),
        ("payload", f'{{"a": 0.{"1" * DIGITS}}}', f"a: is a number of {DIGITS + 2} characters"),
        ("max_attempts", f"1e{'9' * DIGITS}", f"is a number of {DIGITS + 2} characters"),
        ("priority", '1, "priority": 2', "occurs more than once"),
        ("payload", '{"a": 1, "a": 1}', "a: occurs more than once"),
        ("payload", '{"a": [{"b": 1, "c": 2, "b": 3}]}', "a.0.b: occurs more than once"),
    ],
)
def test_a_value_that_cannot_be_kept_is_named_by_its_place(refused: Call, field: str, value: str, why: str) -> None:
    answer = refused("POST", "/v1/runs", 422, field, **posted(run_text(field, value)))
    place, _, detail = why.rpartition(": ")
    [(pointer, told_detail)] = invalid(answer).items()
    assert pointer == "/".join(["", field, *(place.split(".") if place else [])])
    assert told_detail.startswith(detail)


def test_the_very_names_that_errors_use_are_told_like_any_other(refused: Call) -> None:
    body = r'{"_schema": "\u0000", "payload": {"_schema": "\u0000", "\u0000": {"_schema": NaN}}, "": "\u0000"}'
    answer = refused("POST", "/v1/runs", 422, "_schema", **posted(body))
    assert invalid(answer).keys() == {"/_schema", "/payload", "/payload/_schema", "/payload/\0/_schema", "/"}


def test_of_very_many_faults_only_some_are_told(refused: Call) -> None:
    answer = refused("POST", "/v1/runs", 422, "payload", **posted(run_text("payload", f"[{'NaN,' * 60_000}NaN]")))
    assert len(answer.get_data()) < 5_000


UNUSABLE: dict[str, Sequence[object]] = {
    "run_at": (
        "infinity",
        "-infinity",
        "now",
        "tomorrow",
        "epoch",
        "",
        " ",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-01-01T00:00:00+99:99",
        "2030-01-01T00:00:00+24:00",
        "2030-01-01T00:00:00-00:00:00.0000001",
        "2030-06-30T23:59:60Z",
        "2030-02-30T00:00:00Z",
        "2030-01-01T25:00:00Z",
        "2030-01-01T00:00:00Z\n",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "1999-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "10000-01-01T00:00:00Z",
        "294276-01-01T00:00:00Z",
        "-0001-01-01T00:00:00Z",
        "\u0662\u0660\u0663\u0660-01-01T00:00:00Z",
        "2030-01-01T00:00:00Z; DROP TABLE rowcall.job_runs",
        1893456000,
        1.5,
        True,
        {},
        [],
    ),
    "priority": (2**40, -(2**40), 32768, True, False, "1", 1.0, 1.5, [], {}, ""),
    "max_attempts": (0, -1, 1001, 10**30, 2**31, True, "5", 1.0, [], {}),
    "queue": ("", "q" * 500, "Mail", "a b", "'; --", "a/b", "mail\n", "\u202e", "ma\u00efl", 1, True, [], {}),
    "job_type": (None, "", "j" * 64, "j" * 200_000, 1, True, [], {}),
    "payload": (None, [], "", "{}", 1, True, [[]], {"a": "x" * 70_000}),
    # A caller cannot set any of these.
    "id": (1,),
    "status": ("succeeded",),
    "lease_no": (7,),
    "idempotency_key": ("mine",),
    "job_typ": ("noop",),
    "__proto__": ({},),
    "": (1,),
    "j" * 1_000: (1,),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in UNUSABLE.items() for value in values])
def test_a_field_that_cannot_be_used_is_named(refused: Call, field: str, value: object) -> None:
    refused("POST", "/v1/runs", 422, field, **posted(run_with(**{field: value})))


@pytest.mark.parametrize(
    "job_type", ["nope", "noop ", "NOOP", "no\u200bop", "; DROP TABLE rowcall.job_runs", "%s", "{0}"]
)
def test_an_unknown_type_is_refused_with_those_there_are(refused: Call, job_type: str) -> None:
    answer = refused("POST", "/v1/runs", 422, **posted(run_with(job_type=job_type)))
    assert [error["code"] for error in told(answer)["errors"]] == ["job-type-unknown"]


@pytest.mark.parametrize("headers", [{}, {"Content-Type": ""}])
def test_a_body_without_a_content_type_is_refused(refused: Call, headers: dict[str, str]) -> None:
    refused("POST", "/v1/runs", 415, data=run_with(), headers=headers)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/octet-stream",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/jsonp",
        "nonsense",
        "/",
        "application/json, text/plain",
    ],
)
def test_a_body_of_another_kind_is_refused(refused: Call, content_type: str) -> None:
    refused("POST", "/v1/runs", 415, data=run_with(), content_type=content_type)


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/definitions/nightly/pause", "/v1/nowhere"])
def test_a_body_over_256_kib_is_refused_wherever_it_is_sent(refused: Call, path: str) -> None:
    refused("POST", path, 413, **posted(b" " * (256 * 1024 + 1)))


@pytest.mark.parametrize(
    "key",
    ["", " ", "k" * 256, "a,b", "two\tparts", "\x01", "\x7f", "\x85", "\xa0", "ключ".encode().decode("latin-1"), "ä"],
)
def test_an_idempotency_key_that_is_none_is_refused(refused: Call, key: str) -> None:
    refused("POST", "/v1/runs", 422, "Idempotency-Key", **posted(run_with()), headers={"Idempotency-Key": key})


def test_an_idempotency_key_sent_twice_is_refused(refused: Call) -> None:
    # HTTP joins repeated headers with a comma, so no key may contain one.
    refused("POST", "/v1/runs", 422, "Idempotency-Key", **posted(run_with()), headers={"Idempotency-Key": "mine,mine"})
