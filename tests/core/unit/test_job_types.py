"""Declarations: correct ones are found, and wrong ones stop the start with an error that names type and field."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from marshmallow import INCLUDE, Schema, fields

from rowcall import JobType, Run, celery, job_types
from rowcall.base.errors import DeclarationError, JobTypeUnknown, RunInvalid
from rowcall.job_types import Catalogue, Definition, load_catalogue
from rowcall.job_types.handlers import declared_handlers
from rowcall_worker.handlers import load_handlers


class Greeting(Schema):
    user_id = fields.Integer(required=True)
    on = fields.Date(load_default=None, allow_none=True)


def module(*types: job_types.JobType | Definition) -> ModuleType:
    made = ModuleType("shop.job_types")
    vars(made).update({f"TYPE_{number}": kind for number, kind in enumerate(types)})
    return made


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"name": "Send Mail"}, "job type 'Send Mail': name is 'Send Mail' and must be lower-case words"),
        ({"schema": dict}, "job type 'greet': schema is .* and must be a marshmallow Schema class"),
        ({"key": "user_id"}, "job type 'greet': key is 'user_id' and must be a function"),
        ({"queue": "E-Mail"}, "job type 'greet': queue is 'E-Mail' and must be"),
        ({"max_attempts": 0}, "job type 'greet': max_attempts is 0 and must be from 1 to 1000"),
        ({"max_attempts": True}, "job type 'greet': max_attempts is True"),
        ({"lease": 0.5}, "job type 'greet': lease is 0.5 and must be seconds from 1"),
        ({"max_running": 0}, "job type 'greet': max_running is 0 and must be from 1 to 100000"),
        ({"isolated": 1}, "job type 'greet': isolated is 1 and must be True or False"),
        ({"isolated": True, "memory_cap": 5}, "job type 'greet': memory_cap is 5 and must be MiB from 64"),
        ({"isolated": True, "memory_cap": 99.5}, "job type 'greet': memory_cap is 99.5 and must be MiB"),
        ({"memory_cap": 256}, "job type 'greet': memory_cap is 256 and must be left out unless isolated is True"),
        ({"backoff": 5}, "job type 'greet': backoff is 5 and must be fixed"),
        ({"handover": "shop.tasks.send"}, "job type 'greet': handover is 'shop.tasks.send' and must be celery"),
        ({"handover": celery("send"), "isolated": True}, "job type 'greet': isolated is True and must be left out"),
    ],
)
def test_a_wrong_declaration_names_the_type_and_the_field(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeclarationError, match=complaint):
        JobType(**{"name": "greet", "schema": Greeting, **wrong})


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"task": ""}, "task is '' and must be up to 200 letters, digits and signs without a space, such as"),
        ({"task": print}, "task is <built-in function print> and must be"),
        ({"queue": "e mails"}, "queue is 'e mails' and must be"),
        ({"wait": 0}, "wait is 0 and must be seconds from 1 to 604800"),
        ({"wait": "1h"}, "wait is '1h' and must be seconds"),
    ],
)
def test_a_wrong_hand_over_names_the_argument(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeclarationError, match=complaint):
        celery(**{"task": "shop.tasks.send", **wrong})


def test_the_lease_of_a_claim_covers_the_way_to_a_consumer() -> None:
    handed_over = JobType("greet", Greeting, lease=30, handover=celery("shop.tasks.send", wait=600))
    assert handed_over.claimed_seconds(120) == 600
    assert JobType("greet", Greeting, lease=30).claimed_seconds(120) == 30
    assert JobType("greet", Greeting).claimed_seconds(120) == 120


def test_two_types_of_one_name_are_refused() -> None:
    with pytest.raises(DeclarationError, match="'greet': shop.job_types declares a name that is taken"):
        Catalogue(module(JobType("greet", Greeting), JobType("greet", Greeting)))


def test_a_definition_without_a_type_or_a_name_fails_where_it_stands() -> None:
    greet: Any = JobType("greet", Greeting)
    with pytest.raises(DeclarationError, match="'daily': job_type is 'greet' and must be a JobType"):
        Definition("daily", greet.name)
    with pytest.raises(DeclarationError, match="name is JobType.* and must be text, such as 'nightly'"):
        Definition(greet, greet)


def test_definitions_are_found_beside_the_types_and_two_of_one_name_refused() -> None:
    greet = JobType("greet", Greeting)
    daily, other = Definition("daily", greet), Definition("daily", greet, "@daily")
    assert Catalogue(module(greet, daily)).definitions == {"daily": daily}
    with pytest.raises(DeclarationError, match="definition 'daily': shop.job_types declares a name that is taken"):
        Catalogue(module(greet, daily, other))


def test_a_type_with_a_limit_must_have_a_queue_of_its_own() -> None:
    limited, other = JobType("greet", Greeting, max_running=2), JobType("part", Greeting)
    with pytest.raises(DeclarationError, match="'greet': max_running is 2 .* 'default', which 'part' uses too"):
        Catalogue(module(other, limited))
    assert Catalogue(module(other, JobType("greet", Greeting, queue="greet", max_running=2))).limits == {"greet": 2}


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(JobTypeUnknown, match="no job type 'grate'; known here: greet"):
        Catalogue(module(JobType("greet", Greeting)))["grate"]


def test_without_an_app_only_rowcalls_own_types_are_known_and_an_unknown_one_says_what_is_not_set() -> None:
    types = load_catalogue(None)
    own = ["call_ping_url", "carry_out_operation", "expire_keys", "noop", "prune_runs", "send_incidents"]
    assert sorted(types) == own
    with pytest.raises(
        JobTypeUnknown,
        match="known here: call_ping_url, carry_out_operation, .*, prune_runs, send_incidents; ROWCALL_APP is not set",
    ):
        types["send_weekly_report"]


def test_a_payload_is_stored_in_its_json_form_with_defaults() -> None:
    kind = JobType("greet", Greeting, key=lambda payload: f"greet:{payload['user_id']}")
    checked = kind.checked({"user_id": "7", "on": "2026-03-29"})
    assert checked == {"user_id": 7, "on": "2026-03-29"}
    assert kind.natural_key(checked) == "greet:7"


def test_fields_that_a_schema_includes_though_it_does_not_declare_them_are_stored() -> None:
    class Open(Schema):
        class Meta:
            unknown = INCLUDE

        user_id = fields.Integer(required=True, data_key="user", attribute="id")

    assert JobType("greet", Open).checked({"user": "1", "note": [{"x": 1}]}) == {"user": 1, "note": [{"x": 1}]}


class Included(Schema):
    class Meta:
        unknown = INCLUDE

    amount = fields.Integer(data_key="Amount", required=True)
    made = fields.Integer(dump_only=True)
    deep = fields.Integer(data_key="Deep", attribute="zz.yy")


@pytest.mark.parametrize("name", ["amount", "made", "zz"])
@pytest.mark.parametrize("value", [None, 999, "junk"])
def test_no_undeclared_field_passes_for_a_declared_one(name: str, value: object) -> None:
    with pytest.raises(RunInvalid, match=f"{name}: Unknown field"):
        JobType("greet", Included).checked({"Amount": 5, "Deep": 1, name: value})


class Token(Schema):
    token = fields.String(load_only=True)
    more = fields.List(fields.Nested(lambda: Token()))


class Loose(Schema):
    address = fields.Dict(values=fields.Nested(Greeting, unknown=INCLUDE))


class Paired(Schema):
    pair = fields.Tuple([fields.Integer(), fields.Nested(Greeting, unknown=INCLUDE)])


class Outer(Schema):
    inner = fields.Nested(Token)


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        (Token, "token is load_only"),
        (Outer, "inner.token is load_only"),
        (Paired, "pair includes unknown fields of a nested schema"),
        (Loose, "address includes unknown fields of a nested schema"),
    ],
)
def test_a_schema_that_would_drop_a_field_without_a_word_is_refused(schema: type[Schema], lost: str) -> None:
    with pytest.raises(DeclarationError, match=rf"'greet': its schema would drop fields of the payload \({lost}"):
        JobType("greet", schema)


def test_a_wrong_payload_names_its_fields() -> None:
    with pytest.raises(RunInvalid, match="payload: user_id: Missing data .*, colour: Unknown field"):
        JobType("greet", Greeting).checked({"colour": "red"})


def test_the_catalogue_and_the_handlers_are_the_same_set() -> None:
    catalogue = load_catalogue(None)
    assert set(load_handlers(catalogue, None)) == set(catalogue)


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the test's declarations afterwards."""
    load_handlers(load_catalogue(None), None)
    monkeypatch.setattr("rowcall.job_types.handlers._declared", dict(declared_handlers()))


def greet(run: Run) -> None:
    """Greet."""


def wave(run: Run) -> None:
    """Wave."""


def with_greeting() -> Catalogue:
    return Catalogue(*[module(JobType("greet", Greeting), *load_catalogue(None).values())])


@pytest.mark.usefixtures("handlers")
def test_a_handler_is_declared_by_its_type_and_stays_the_function_it_is() -> None:
    catalogue = with_greeting()
    assert JobType("greet", Greeting).handler(greet) is greet
    assert load_handlers(catalogue, None)["greet"] is greet


@pytest.mark.usefixtures("handlers")
def test_two_handlers_of_a_type_are_refused_with_both_places() -> None:
    kind = JobType("greet", Greeting)
    kind.handler(greet)
    with pytest.raises(
        DeclarationError, match=f"'greet' has two handlers: {__name__}.greet and {__name__}.wave; keep one"
    ):
        kind.handler(wave)


@pytest.mark.usefixtures("handlers")
def test_a_handler_of_a_type_that_no_job_types_module_declares_stops_a_worker() -> None:
    JobType("greet", Greeting).handler(greet)
    with pytest.raises(
        DeclarationError,
        match=f"'greet' has the handler {__name__}.greet, but no job_types module declares it; declare",
    ):
        load_handlers(load_catalogue(None), None)


@pytest.mark.usefixtures("handlers")
def test_what_is_no_function_cannot_be_a_handler() -> None:
    wrong: Any = {"said": "hello"}
    with pytest.raises(DeclarationError, match="'greet': its handler is .* and must be a function that takes the run"):
        JobType("greet", Greeting).handler(wrong)


def test_a_type_without_handler_stops_a_worker_with_its_name() -> None:
    with pytest.raises(DeclarationError, match="'greet' has no handler: write one in handlers, decorated with @TYPE"):
        load_handlers(with_greeting(), None)


def test_an_app_that_is_not_there_is_named_with_what_to_do() -> None:
    with pytest.raises(
        DeclarationError, match="ROWCALL_APP is 'no_such_shop', and there is no module no_such_shop.job_types"
    ):
        load_catalogue("no_such_shop")
