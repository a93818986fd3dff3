"""Responses are limited in bytes, however large the rows are, and pages that end early skip nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.queue.enqueue import PAYLOAD_BYTES
from rowcall.queue.views.pages import PAGE_BYTES
from rowcall.status import Status
from tests.api.conftest import Call, fields_of, invalid, told
from tests.support.processes import rowcall
from tests.support.rows import run_in

RUNS = 40

# For what surrounds the items, although a response omits the blanks of a stored value.
AROUND = 1000


@pytest.fixture(scope="module")
def runs(module_url: str) -> list[int]:
    """Insert runs with the largest payloads and results allowed; return them newest first."""
    text = f"jsonb_build_object('text', repeat('x', {PAYLOAD_BYTES - 12}))"
    with database.transaction(module_url) as connection:
        fetch_all(connection, "DELETE FROM rowcall.job_runs")
        made = [run_in(connection, Status.SUCCEEDED, payload=text, result=text)["id"] for _ in range(RUNS)]
    return made[::-1]


def pages(call: Call, query: str) -> Iterator[list[dict[str, Any]]]:
    cursor = ""
    while cursor is not None:
        answer = call("GET", f"/v1/runs?limit=200{query}{cursor and f'&cursor={cursor}'}", scope="read")
        assert answer.status_code == 200
        assert len(answer.get_data()) <= PAGE_BYTES + AROUND
        yield told(answer)["items"]
        cursor = told(answer)["next"]


def test_a_list_leaves_payloads_and_results_out_and_fits_one_page(call: Call, runs: list[int]) -> None:
    [items] = pages(call, "")
    assert [run["id"] for run in items] == runs
    assert not {"payload", "result"} & {name for run in items for name in run}


@pytest.mark.parametrize(
    ("query", "included"),
    [
        ("&include=payload", {"payload"}),
        ("&include=payload,result", {"payload", "result"}),
        ("&include=payload&include=result", {"payload", "result"}),
    ],
)
def test_pages_with_large_values_end_by_their_bytes_and_together_have_every_run_once(
    call: Call, runs: list[int], query: str, included: set[str]
) -> None:
    seen = list(pages(call, query))
    assert len(seen) > 2
    assert [run["id"] for page in seen for run in page] == runs
    assert all(len(run[name]["text"]) == PAYLOAD_BYTES - 12 for page in seen for run in page for name in included)


def test_what_a_list_cannot_include_is_refused_by_name(call: Call) -> None:
    refused = call("GET", "/v1/runs?include=last_stack", scope="read")
    assert fields_of(refused) == {"include"}


def test_the_command_has_payloads_and_results_where_they_are_asked_for(
    runs: list[int], environment: dict[str, str]
) -> None:
    bare = json.loads(rowcall(environment, "runs", "list", "--limit", "1", "--json").stdout)
    assert not {"payload", "result"} & set(bare[0])
    asked = ["--include", "payload", "--include", "result", "--limit", "30", "--json"]
    whole = json.loads(rowcall(environment, "runs", "list", *asked).stdout)
    assert [run["id"] for run in whole] == runs[:30]
    assert len(whole[0]["payload"]["text"]) == len(whole[0]["result"]["text"]) == PAYLOAD_BYTES - 12


def test_a_small_body_that_would_be_stored_as_megabytes_is_refused_by_name(refused: Call) -> None:
    body = json.dumps({"job_type": "noop", "payload": {"numbers": [1e308] * 8000}})
    assert len(body) < PAYLOAD_BYTES
    answer = refused("POST", "/v1/runs", 422, "payload", data=body, content_type="application/json")
    assert "2488013 bytes as PostgreSQL writes it; the limit is 65536" in invalid(answer)["/payload"]
