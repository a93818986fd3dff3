"""POST /v1/runs can be repeated: an idempotency key identifies a request, a natural key what a run is about."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from rowcall.access import api_keys
from rowcall.base import database
from rowcall.base.database import fetch_all, fetch_value
from rowcall.status import Status
from rowcall_api.app import create_app
from tests.api.conftest import MAKER, Call, told
from tests.api.serving import JSON, Heard, Server, heard, request, send, served
from tests.support.processes import wait_until
from tests.support.rows import run_in

pytestmark = pytest.mark.usefixtures("example_app")

NOOP = {"job_type": "noop", "payload": {"hello": "world"}}
CALLERS = 50


@pytest.fixture(scope="module")
def server(module_url: str, keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server as deployed: gunicorn with processes and threads."""
    with served(
        {"DATABASE_URL": module_url, "PATH": "", "ROWCALL_APP": "rowcall_example"}, tmp_path_factory.mktemp("api")
    ) as server:
        yield server


def post(key: str, path: str, body: object, *headers: str) -> bytes:
    return request("POST", path, key, JSON, *headers, body=json.dumps(body).encode())


def runs_under(url: str, key: str) -> list[int]:
    with database.transaction(url) as connection:
        sql = "SELECT id FROM rowcall.job_runs WHERE %(key)s IN (idempotency_key, held_key)"
        return [row["id"] for row in fetch_all(connection, sql, {"key": key})]


def all_at_once(server: Server, asked: bytes) -> list[Heard]:
    """Send the same request on many open connections at the same time."""
    answers: list[Heard] = []
    together = threading.Barrier(CALLERS)

    def ask() -> None:
        with server.connect() as connection:
            together.wait()
            send(connection, asked)
            answers.append(heard(connection))

    threads = [threading.Thread(target=ask) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize("what", ["a key", "a natural key", "a clone"])
def test_fifty_equal_requests_at_once_end_in_one_run(
    server: Server, module_url: str, keys: dict[str, str], what: str
) -> None:
    path, body, headers, key = "/v1/runs", dict[str, Any](NOOP), [f"Idempotency-Key: {what}"], what
    if what == "a natural key":
        body, headers, key = {"job_type": "cleanup_nightly", "payload": {"day": "2026-03-01"}}, [], ""
    if what == "a clone":
        with database.transaction(module_url) as connection:
            path, body = f"/v1/runs/{run_in(connection, Status.DEAD)['id']}/clone", {"priority": 3}
    answers = all_at_once(server, post(keys["admin"], path, body, *headers))
    assert Counter(answer.status for answer in answers) == {202: 1, 200: CALLERS - 1}
    assert len({answer.told["id"] for answer in answers}) == 1
    assert {answer.headers["Location"] for answer in answers} == {f"/v1/runs/{answers[0].told['id']}"}
    replayed = [answer for answer in answers if answer.headers.get("Idempotent-Replayed") == "true"]
    assert [answer.status for answer in replayed] == [200] * (CALLERS - 1)
    assert runs_under(module_url, key or answers[0].told["natural_key"]) == [answers[0].told["id"]]


def test_a_request_whose_caller_has_gone_is_found_done_when_it_is_repeated(
    server: Server, module_url: str, keys: dict[str, str]
) -> None:
    asked = post(keys["enqueue"], "/v1/runs", NOOP, "Idempotency-Key: gone")
    with server.connect() as connection:
        send(connection, asked)
    wait_until(lambda: runs_under(module_url, "gone"), "the run exists, although the client got no response")
    again = server.ask(asked)
    assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert runs_under(module_url, "gone") == [again.told["id"]]


def test_a_request_that_was_cut_short_leaves_nothing_and_is_done_when_it_is_repeated(
    server: Server, module_url: str, keys: dict[str, str]
) -> None:
    asked = post(keys["enqueue"], "/v1/runs", NOOP, "Idempotency-Key: cut")
    for length in (len(asked) // 2, len(asked) - 1):
        with server.connect() as connection:
            send(connection, asked[:length])
    done = server.ask(asked)
    assert done.status == 202
    assert runs_under(module_url, "cut") == [done.told["id"]]


@pytest.mark.parametrize(
    "wrong", [{"payload": {"a": "\0"}}, {"queue": "No Such"}, {"job_type": "nop"}, {"run_at": "2030-01-01T00:00:00"}]
)
def test_a_request_that_is_refused_leaves_its_key_free(call: Call, module_url: str, wrong: dict[str, Any]) -> None:
    key = {"Idempotency-Key": f"refused {[*wrong]}"}
    assert call("POST", "/v1/runs", json={**NOOP, **wrong}, headers=key).status_code == 422
    assert runs_under(module_url, key["Idempotency-Key"]) == []
    assert call("POST", "/v1/runs", json=NOOP, headers=key).status_code == 202


def test_a_key_recognises_the_requests_of_one_caller_and_no_others(call: Call, module_url: str) -> None:
    key = {"Idempotency-Key": "one request"}
    first, stranger = (call("POST", "/v1/runs", scope=scope, json=NOOP, headers=key) for scope in ("admin", "enqueue"))
    assert (first.status_code, stranger.status_code) == (202, 202)
    again = call("POST", "/v1/runs", scope="admin", json=NOOP, headers=key)
    assert (again.status_code, told(again)) == (200, told(first))
    other = call("POST", "/v1/runs", scope="admin", json={**NOOP, "priority": 1}, headers=key)
    assert (other.status_code, told(other)["type"]) == (422, "urn:rowcall:problem:idempotency-key-reused")
    assert sorted(runs_under(module_url, "one request")) == [told(first)["id"], told(stranger)["id"]]


def test_a_request_that_got_the_run_of_its_fact_gets_it_again_when_another_run_is_possible(
    call: Call, module_url: str
) -> None:
    asked = {"job_type": "cleanup_nightly", "payload": {"day": "2026-04-01"}}

    def ask(key: str, **other: Any) -> tuple[int, Any, str | None]:
        answer = call("POST", "/v1/runs", json={**asked, **other}, headers={"Idempotency-Key": f"fact {key}"})
        return answer.status_code, told(answer).get("id"), answer.headers.get("Idempotent-Replayed")

    status, run_id, _ = ask("s")
    assert (status, ask("t")) == (202, (200, run_id, "true"))
    with database.transaction(module_url) as connection:
        release = "unique_mode = 'live', status = 'succeeded', finished_at = now()"
        fetch_all(connection, f"UPDATE rowcall.job_runs SET {release} WHERE id = {run_id}")
    assert ask("t") == (200, run_id, "true")
    assert ask("t", priority=1)[0] == 422
    runs = [{**asked, "idempotency_key": f"fact {key}"} for key in "st"]
    assert told(call("POST", "/v1/runs/batch", json={"runs": runs}))["new"] == 0
    assert ask("u")[0] == 202


def test_a_key_that_replaces_another_one_goes_on_with_its_requests(fresh_url: str) -> None:
    client = create_app(fresh_url).test_client()
    with database.transaction(fresh_url) as connection:
        old = api_keys.create_key(connection, "shop", ["enqueue", "read"], MAKER)
        new = api_keys.rotate_key(connection, api_keys.list_keys(connection)[0]["id"], timedelta(hours=1), MAKER).key
    answers = [
        client.post("/v1/runs", json=NOOP, headers={"Authorization": f"Bearer {key}", "Idempotency-Key": "rotated"})
        for key in (old, new)
    ]
    assert [answer.status_code for answer in answers] == [202, 200]


def test_one_instant_in_two_offsets_is_the_same_content(call: Call) -> None:
    key = {"Idempotency-Key": "one instant"}
    asked = [{**NOOP, "run_at": time} for time in ("2030-03-31T09:00:00+02:00", "2030-03-31T07:00:00Z")]
    assert [call("POST", "/v1/runs", json=body, headers=key).status_code for body in asked] == [202, 200]


def test_a_request_that_met_no_database_is_done_once_when_it_is_repeated(fresh_url: str) -> None:
    app = create_app(fresh_url)
    with database.transaction(fresh_url) as connection:
        key = api_keys.create_key(connection, "patient", ["enqueue"], MAKER)
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "patient"}
    answers = []
    for reachable in (False, True, True):
        let_in(fresh_url, reachable)
        answers.append(app.test_client().post("/v1/runs", json=NOOP, headers=headers))
    assert [answer.status_code for answer in answers] == [503, 202, 200]
    assert answers[0].headers["Retry-After"]
    assert runs_under(fresh_url, "patient") == [told(answers[1])["id"]]
    app.extensions["database"].dispose()


def let_in(url: str, reachable: bool) -> None:
    """Allow connections to this database, or end them all."""
    with database.transaction(url.rsplit("/", 1)[0] + "/rowcall") as connection:
        connection.autocommit = True
        name = url.rsplit("/", 1)[1]
        fetch_all(connection, f"ALTER DATABASE {name} ALLOW_CONNECTIONS {reachable}")
        if not reachable:
            end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %(name)s"
            fetch_value(connection, end, {"name": name})
