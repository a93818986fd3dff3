"""GET /v1/definitions ends a page when it has enough bytes, however large the payloads are."""

from __future__ import annotations

import pytest

from rowcall.queue.views.pages import PAGE_BYTES
from tests.api.conftest import Call, invalid, told

LARGE = {"job_type": "noop", "payload": {"text": "x" * 60_000}}


def test_pages_of_large_definitions_end_by_their_bytes_and_together_have_each_once(call: Call) -> None:
    names = [f"large-{number:02}" for number in range(20)]
    for name in names:
        assert call("PUT", f"/v1/definitions/{name}", json=LARGE).status_code == 201
    first = call("GET", "/v1/definitions", scope="read")
    assert len(first.get_data()) < PAGE_BYTES
    second = call("GET", f"/v1/definitions?cursor={told(first)['next']}", scope="read")
    assert told(second)["next"] is None
    assert [one["name"] for answer in (first, second) for one in told(answer)["items"]] == names


@pytest.mark.parametrize("cursor", ["", "%00", "large-03", "x" * 200])
def test_what_is_no_cursor_is_refused_by_name(call: Call, cursor: str) -> None:
    refused = call("GET", f"/v1/definitions?cursor={cursor}", scope="read")
    assert list(invalid(refused)) == ["/cursor"]
