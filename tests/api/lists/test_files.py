"""/v1/files: what handlers have written, as a list and to download."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator
from werkzeug.test import TestResponse

from rowcall.base import database
from rowcall.base.database import LARGEST_ID, fetch_all, fetch_value
from rowcall.base.files import Files
from tests.api.conftest import Call, told

CONTENT = b"day,total\n2026-03-23,7\n" * 100_000

INSERT = """
INSERT INTO rowcall.generated_files
    (type, date, key, run_id, lease_no, content_hash, state, applied_at, path, size_bytes, sha256)
VALUES ('sales_report', '2026-03-23', %(key)s, %(run_id)s, 1, '', %(state)s,
    CASE WHEN %(state)s = 'applied' THEN now() END, %(path)s, %(size)s, %(sha256)s)
RETURNING id
"""


class Kept:
    """The ledger, and the folder of generated files."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self.folder = folder

    def add(self, key: str, content: bytes = CONTENT, run_id: int = 1, state: str = "applied", **known: Any) -> int:
        """Write a file, record it, and return its id; `known` are details that are recorded differently."""
        written = Files(self.folder).write(f"sales/{key}", content)
        row = {"path": written.path, "size": written.size, "sha256": written.sha256, **known}
        with database.transaction(self._url) as connection:
            number: int = fetch_value(connection, INSERT, {"key": key, "run_id": run_id, "state": state, **row})
        return number


@pytest.fixture
def kept(module_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """Yield an empty ledger, and the folder that the API reads."""
    monkeypatch.setenv("ROWCALL_FILES", str(tmp_path))
    yield Kept(module_url, tmp_path)
    with database.transaction(module_url) as connection:
        fetch_all(connection, "TRUNCATE rowcall.generated_files")


def listed(call: Call, query: str = "") -> dict[str, Any]:
    return told(call("GET", f"/v1/files{query}", scope="read"))


def test_files_are_listed_the_newest_first_a_page_at_a_time(call: Call, kept: Kept) -> None:
    ids = [kept.add(f"{number}.csv", run_id=1 + number % 2) for number in range(3)]
    kept.add("later.csv", state="intent")
    first = listed(call, "?limit=2")
    second = listed(call, f"?limit=2&cursor={first['next']}")
    assert [file["id"] for file in first["items"] + second["items"]] == ids[::-1]
    assert second["next"] is None
    assert [file["id"] for file in listed(call, "?run_id=2")["items"]] == [ids[1]]
    file = first["items"][0]
    assert (file["type"], file["date"], file["key"], file["path"]) == (
        *("sales_report", "2026-03-23", "2.csv"),
        "sales/2.csv",
    )
    assert (file["size_bytes"], file["sha256"]) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def downloaded(call: Call, number: int, method: str = "GET", **headers: str) -> TestResponse:
    """Ask for a file's content, and close it as a server does."""
    answer = call(method, f"/v1/files/{number}/content", scope="read", headers=headers)
    answer.get_data()
    answer.close()
    return answer


def test_a_file_is_downloaded_as_it_was_written(call: Call, kept: Kept) -> None:
    number = kept.add("march.csv")
    answer = downloaded(call, number)
    assert (answer.status_code, answer.get_data()) == (200, CONTENT)
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == "attachment; filename=march.csv"
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    head = downloaded(call, number, "HEAD")
    assert (head.status_code, head.get_data()) == (200, b"")


def test_one_file_is_shown_as_in_the_list(call: Call, kept: Kept) -> None:
    number = kept.add("march.csv")
    assert [told(call("GET", f"/v1/files/{number}", scope="read"))] == listed(call)["items"]


@pytest.mark.parametrize(
    "known", [{"path": None}, {"path": "sales/gone.csv"}, {"path": "../secret"}, {"path": "sales"}]
)
def test_a_file_that_is_not_there_is_404_and_says_why(call: Call, kept: Kept, known: dict[str, Any]) -> None:
    number = kept.add("march.csv", **known)
    answer = downloaded(call, number)
    assert (answer.status_code, answer.get_json()["type"]) == (404, "urn:rowcall:problem:file-missing")
    assert "ROWCALL_FILES" in answer.get_json()["detail"] or known["path"] is None


@pytest.mark.parametrize("content", [b"other", CONTENT[::-1]])
def test_a_file_that_was_changed_since_is_refused(call: Call, kept: Kept, content: bytes) -> None:
    number = kept.add("march.csv")
    Files(kept.folder).write("sales/march.csv", content)
    answer = downloaded(call, number)
    assert (answer.status_code, answer.get_json()["type"]) == (409, "urn:rowcall:problem:file-changed")


def test_no_link_leads_out_of_the_folder(call: Call, kept: Kept) -> None:
    number = kept.add("march.csv", size=None, sha256=None)
    (kept.folder / "sales" / "march.csv").unlink()
    (kept.folder / "sales" / "march.csv").symlink_to("/etc/hostname")
    assert downloaded(call, number).status_code == 404


@pytest.mark.parametrize("number", [0, 7, LARGEST_ID])
@pytest.mark.parametrize("rest", ["", "/content"])
def test_a_file_that_was_never_written_is_not_found(call: Call, kept: Kept, number: int, rest: str) -> None:
    assert call("GET", f"/v1/files/{number}{rest}", scope="read").status_code == 404


@pytest.mark.parametrize(
    ("accept", "status"), [("application/octet-stream", 200), ("*/*", 200), ("application/json", 406), ("text/*", 406)]
)
def test_a_caller_who_takes_no_files_is_told_so(call: Call, kept: Kept, accept: str, status: int) -> None:
    number = kept.add("march.csv")
    answer = downloaded(call, number, Accept=accept)
    assert answer.status_code == status
    assert (status == 200) is not answer.is_json


def test_the_list_is_as_it_is_described(app: flask.Flask, call: Call, kept: Kept) -> None:
    kept.add("march.csv", path=None, size=None, sha256=None)
    described = told(app.test_client().get("/openapi.json"))
    schema = described["paths"]["/v1/files"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    OAS31Validator({**schema, "components": described["components"]}).validate(listed(call))
    content = described["paths"]["/v1/files/{file_id}/content"]["get"]["responses"]["200"]["content"]
    assert [*content] == ["application/octet-stream"]


@pytest.mark.parametrize(("query", "field"), [("limit=0", "limit"), ("run_id=x", "run_id"), ("cursor=w", "cursor")])
def test_what_cannot_be_asked_is_a_wrong_field(refused: Call, query: str, field: str) -> None:
    refused("GET", f"/v1/files?{query}", 422, field)


@pytest.mark.parametrize("path", ["", "/1", "/1/content"])
@pytest.mark.parametrize("scope", ["enqueue", "operate"])
def test_it_needs_the_scope_read(refused: Call, path: str, scope: str) -> None:
    refused("GET", f"/v1/files{path}", 403, scope=scope)
