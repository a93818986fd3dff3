"""/openapi.json for generated clients: stable names, whole numbers of 64 bits, limits, and examples of real answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import flask
import pytest
from openapi_schema_validator import OAS31Validator

from rowcall_api.document.examples import EXAMPLES, FILE
from rowcall_api.schemas.fields import PAGE_MOST
from tests.api.conftest import Call, told
from tests.reference import examples

# The names that have been published: without one of them, the code that uses a generated client breaks.
PUBLISHED = (
    "cancelRun cloneRun continueOperation createKey downloadFile enqueueRun enqueueRuns explainRun getDefinition "
    "getEffect getFile getOperation getOwnKey getQueue getRun getSeries getStats limitQueue listAudit "
    "listDefinitions listEffects listEvents listFailures listFiles listJobTypes listKeys listOccurrences "
    "listOperationRefusals listOperations listQueues listRunAttempts listRunEffects listRunLog listRuns "
    "listHandedOver listWorkers "
    "pauseDefinition pauseQueue previewDefinition previewOperation putDefinition removeDefinition "
    "removeQueueSettings rescheduleRun resolveEffect resumeDefinition resumeQueue retryRun revokeKey rotateKey "
    "runDefinitionNow runNow startOperation stopOperation"
)

NAME = re.compile(r"[a-z]+([A-Z][a-z]+)+")


@pytest.fixture(scope="module")
def described(app: flask.Flask) -> dict[str, Any]:
    return told(app.test_client().get("/openapi.json"))


def operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in described["paths"].values():
        yield from (operation for method, operation in path.items() if method != "parameters")


def schemas(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema in the document, with its place; those of payloads are the app's."""
    if isinstance(part, list):
        for number, one in enumerate(part):
            yield from schemas(one, f"{place}/{number}")
    if isinstance(part, dict):
        if "type" in part and not isinstance(part["type"], dict):
            yield place, part
        for name, one in part.items():
            if name not in {"example", "examples"} and not name.startswith("payload."):
                yield from schemas(one, f"{place}/{name}")


def has_type(schema: dict[str, Any], name: str) -> bool:
    return name in (schema["type"] if isinstance(schema["type"], list) else [schema["type"]])


def test_every_operation_has_a_readable_name_and_none_that_was_published_is_gone(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(described)]
    assert [name for name in names if not NAME.fullmatch(name)] == []
    published = {*PUBLISHED.split()}
    assert published - {*names} == set()
    # A new name is published with its release: add it above.
    assert {*names} - published == set()


def test_every_whole_number_has_64_bits(described: dict[str, Any]) -> None:
    numbers = [(place, schema) for place, schema in schemas(described) if has_type(schema, "integer")]
    assert len(numbers) > 90
    assert [place for place, schema in numbers if schema.get("format") != "int64"] == []


def test_every_page_size_is_a_limit_of_its_answer(described: dict[str, Any]) -> None:
    paged = [
        operation
        for operation in operations(described)
        if any(parameter["name"] == "limit" for parameter in operation.get("parameters", ()))
    ]
    assert len(paged) >= 8
    for operation in paged:
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        answer = schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]
        items = described["components"]["schemas"][answer]["properties"]["items"]
        assert items.get("maxItems") == PAGE_MOST, f"{answer}: make its items with page_items"
        taken = {parameter["name"]: parameter for parameter in operation["parameters"]}
        assert (taken["limit"]["schema"]["minimum"], taken["limit"]["schema"]["maximum"]) == (1, PAGE_MOST)
        if "next" in described["components"]["schemas"][answer]["properties"]:
            assert taken["cursor"]["description"].startswith("The `next` of the previous page"), answer


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [("priority", [-32768, 32767], [-32769, 32768]), ("max_attempts", [1, 1000], [0, 1001])],
)
def test_the_bounds_of_a_run_are_those_that_are_kept(
    call: Call, described: dict[str, Any], name: str, inside: list[int], outside: list[int]
) -> None:
    for component in ("Enqueue", "BatchRun", "Clone"):
        schema = described["components"]["schemas"][component]["properties"][name]
        assert [schema["minimum"], schema["maximum"]] == inside
    for value, status in [*((value, 202) for value in inside), *((value, 422) for value in outside)]:
        assert call("POST", "/v1/runs", json={"job_type": "noop", name: value}).status_code == status


@pytest.mark.parametrize("action", ["retry", "clone"])
def test_what_brings_a_natural_key_back_may_be_refused_because_of_it(described: dict[str, Any], action: str) -> None:
    refusal = described["paths"][f"/v1/runs/{{run_id}}/{action}"]["post"]["responses"]["409"]["$ref"].split("/")[-1]
    assert "another run holds the natural key" in described["components"]["responses"][refusal]["description"]


def test_every_answer_has_an_example_that_fits_its_schema(described: dict[str, Any]) -> None:
    answering = set()
    for operation in operations(described):
        answers = [one for one in examples.successes(operation) if examples.JSON in one.get("content", ())]
        found = [content for one in answers for content in one["content"].values() if "example" in content]
        if answers:
            answering.add(operation["operationId"])
            assert found, f"{operation['operationId']} has no example: run `make docs`"
        for content in found:
            validator = OAS31Validator({**content["schema"], "components": described["components"]})
            assert list(validator.iter_errors(content["example"])) == [], operation["operationId"]
    assert answering == EXAMPLES.keys()


def test_the_examples_are_the_answers_of_now(fresh_url: str) -> None:
    recorded = examples.page(fresh_url)
    assert json.loads(recorded).keys() == EXAMPLES.keys()
    for name, one in json.loads(recorded).items():
        assert one == EXAMPLES[name], f"{name} answers something else than its example: run `make docs`"
    assert recorded == FILE.read_text()
