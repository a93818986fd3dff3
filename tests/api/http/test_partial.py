"""A key without the scope `read` gets what the document says, from each operation that it may use."""

from __future__ import annotations

import pytest
from openapi_schema_validator import OAS31Validator

from rowcall.access import api_keys
from rowcall.base import database
from rowcall_api.app import create_app
from tests.api.conftest import MAKER
from tests.reference.examples import PARTS, REQUESTS, ROWS, Ask, in_order

# The key lacks a scope, or the first request has changed what the second one needs.
REFUSED = {403, 409}


def test_each_answer_to_a_key_without_read_has_the_documents_schema(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWCALL_RATE_LIMIT", "0")
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, ROWS)
        key = api_keys.create_key(connection, "blind", ["enqueue", "operate"], MAKER)
    client = create_app(fresh_url).test_client()
    document = client.get("/openapi.json").get_json()
    answered = []
    # The second time, requests with a key are replays.
    for name, (method, path) in [*in_order(document).items()] * 2:
        ask = REQUESTS.get(name, Ask())
        target = path.format(**{**PARTS, **ask.parts})
        operation = document["paths"][path][method]
        headers = {"Authorization": f"Bearer {key}"}
        if any(parameter.get("name") == "Idempotency-Key" for parameter in operation.get("parameters", ())):
            headers["Idempotency-Key"] = name
        answer = client.open(target, method=method, json=ask.body, query_string=ask.query, headers=headers)
        if answer.status_code in REFUSED:
            continue
        assert answer.status_code < 300, f"{name}: {answer.text}"
        [described] = operation["responses"][str(answer.status_code)]["content"].values()
        validator = OAS31Validator({**described["schema"], "components": document["components"]})
        errors = [error.message for error in validator.iter_errors(answer.get_json())]
        assert not errors, f"{name} {answer.status_code}: {errors}"
        answered.append((name, answer.status_code))
    changes = {("retryRun", 200), ("resumeQueue", 200), ("resumeDefinition", 200), ("resolveEffect", 200)}
    assert changes | {("enqueueRun", 200), ("cloneRun", 202), ("startOperation", 200)} <= {*answered}
