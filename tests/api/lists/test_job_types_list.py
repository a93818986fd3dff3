"""/v1/job-types: what each type declares, and the JSON Schema of its payload, here and in /openapi.json."""

from __future__ import annotations

import re
from typing import Any

import flask
import pytest
from marshmallow import Schema, fields, validate
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from rowcall import JobType, fixed
from rowcall.job_types import catalogue
from rowcall_api.payload_schemas import payload_schema
from rowcall_api.schemas.job_types import described
from tests.api.conftest import Call, told

pytestmark = pytest.mark.usefixtures("example_app")

WEEK = {"user_id": 1, "date_range": {"from": "2026-03-23", "to": "2026-03-29"}}


@pytest.fixture
def listed(call: Call) -> dict[str, dict[str, Any]]:
    """Return the job types by name."""
    answer = told(call("GET", "/v1/job-types", scope="read"))
    assert answer["next"] is None
    return {item["name"]: item for item in answer["items"]}


def fits(schema: dict[str, Any], payload: object) -> bool:
    OAS31Validator.check_schema(schema)
    return bool(OAS31Validator(schema).is_valid(payload))


def schema_of(*validators: Any, **more: Any) -> dict[str, Any]:
    """Return the JSON Schema of a payload with one text that has these validators."""
    declared = type("Declared", (Schema,), {"text": fields.String(validate=list(validators), **more)})
    return payload_schema(JobType("declared", schema=declared))


def test_every_type_is_listed_by_name_with_what_it_declares(listed: dict[str, dict[str, Any]]) -> None:
    assert [*listed] == sorted(catalogue())
    report = listed["send_weekly_report"]
    assert (report["queue"], report["max_attempts"], report["time_limit"]) == ("mail", 10, 300)
    assert (report["natural_key"], report["unique"], report["scope"]) == (True, "ever", "enqueue")
    assert report["backoff"] == {"delays": [10, 20, 40, 80, 160], "cap": 3600, "jitter": True}
    assert report["description"] == "A user and a week."
    assert listed["prune_runs"]["scope"] == "admin"


def test_no_delay_is_listed_after_the_last_attempt() -> None:
    job_type = JobType("declared", schema=Schema, max_attempts=3, backoff=fixed(7, jitter=False))
    assert described(job_type)["backoff"] == {"delays": [7, 7], "cap": 7, "jitter": False}


@pytest.mark.parametrize(
    ("job_type", "payload", "does"),
    [
        ("noop", {"anything": [1]}, True),
        ("send_weekly_report", WEEK, True),
        ("send_weekly_report", {**WEEK, "user_id": 0}, False),
        ("send_weekly_report", {**WEEK, "date_range": {"from": "2026-03-23"}}, False),
        ("send_weekly_report", {**WEEK, "colour": "red"}, False),
        ("send_weekly_report", {"user_id": 1}, False),
        ("prune_runs", {}, True),
        ("prune_runs", {"keep_days": {"dead": 0}}, False),
        ("deliver_webhook", {"event_id": "a", "url": "https://shop.example", "body": {}}, True),
        ("deliver_webhook", {"event_id": "a b", "url": "https://shop.example", "body": {}}, False),
    ],
)
def test_a_payload_that_its_type_refuses_does_not_fit_its_schema(
    listed: dict[str, dict[str, Any]], job_type: str, payload: dict[str, Any], does: bool
) -> None:
    assert fits(listed[job_type]["payload_schema"], payload) is does


def test_a_pattern_matches_from_the_start_as_python_does() -> None:
    for pattern in (r"[a-z]+\Z", "[a-z]+$", r"^[a-z]+\Z", "a$|[a-z]+$"):
        schema = schema_of(validate.Regexp(pattern))
        assert fits(schema, {"text": "abc"}), pattern
        assert not fits(schema, {"text": "1abc"}), pattern
        assert not fits(schema, {"text": "abc1"}), pattern


@pytest.mark.parametrize(
    "regex", [r"(?P<word>a)", r"a\Z|b", re.compile("a", re.IGNORECASE), r"(?i:a)", r"\Aa", r"a++", r"(?>a)"]
)
def test_a_pattern_that_only_python_knows_is_left_out(regex: Any) -> None:
    assert schema_of(validate.Regexp(regex))["properties"] == {"text": {"type": "string"}}


def test_a_pattern_that_the_declaration_describes_itself_is_kept() -> None:
    schema = schema_of(validate.Regexp(r"(?i)a"), metadata={"pattern": "^[aA]"})
    assert schema["properties"]["text"]["pattern"] == "^[aA]"


class Tree(Schema):
    """A tree of
    names.
    """

    name = fields.String(required=True)
    made_at = fields.DateTime(required=True, dump_only=True)
    branches = fields.List(fields.Nested(lambda: Tree()))
    twin = fields.Nested(lambda: Twin())


class Twin(Schema):
    """Two trees."""

    trees = fields.List(fields.Nested(Tree))


def test_schemas_may_nest_themselves_and_a_field_that_cannot_be_sent_is_left_out() -> None:
    schema = payload_schema(JobType("declared", schema=Tree))
    assert schema["description"] == "A tree of\nnames."
    assert ([*schema["properties"]], schema["required"]) == (["name", "branches", "twin"], ["name"])
    assert fits(schema, {"name": "a", "twin": {"trees": [{"name": "b", "branches": []}]}})
    assert not fits(schema, {"name": "a", "branches": [{"name": "b"}, {"twin": {}}]})
    assert not fits(schema, {"name": "a", "twin": {"trees": [{"name": 1}]}})


class Unmade(Schema):
    """A schema that cannot be made without arguments."""

    def __init__(self, shop: str) -> None:
        super().__init__()


def test_a_schema_that_cannot_be_converted_is_any_object() -> None:
    schema = payload_schema(JobType("declared", schema=Unmade))
    assert (schema["type"], fits(schema, {"field": 1})) == ("object", True)


def test_the_document_names_the_payloads_of_all_types_where_a_run_is_enqueued(app: flask.Flask) -> None:
    document = told(app.test_client().get("/openapi.json"))
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    schemas = document["components"]["schemas"]
    for request in ("Enqueue", "BatchRun"):
        payload = schemas[request]["properties"]["payload"]
        named = [one["$ref"].removeprefix("#/components/schemas/") for one in payload["anyOf"]]
        # Generated clients read an object as the first alternative that fits.
        assert (payload["type"], named[0]) == ("object", "payload.noop")
        assert sorted(named) == [f"payload.{name}" for name in sorted(catalogue())]
    report = {**schemas["payload.send_weekly_report"], "components": document["components"]}
    assert fits(report, WEEK)
    assert not fits(report, {**WEEK, "date_range": {}})


def test_a_payload_of_any_type_fits_the_document(app: flask.Flask, call: Call) -> None:
    document = told(app.test_client().get("/openapi.json"))
    enqueue = {**document["components"]["schemas"]["Enqueue"], "components": document["components"]}
    for sent in ({"job_type": "noop", "payload": {"a": 1}}, {"job_type": "send_weekly_report", "payload": WEEK}):
        assert fits(enqueue, sent)
        assert call("POST", "/v1/runs", json=sent).status_code == 202


@pytest.mark.parametrize("scope", ["enqueue", "operate"])
def test_it_needs_the_scope_read(refused: Call, scope: str) -> None:
    refused("GET", "/v1/job-types", 403, scope=scope)
    refused("GET", "/v1/job-types?cursor=x", 422, "cursor")
