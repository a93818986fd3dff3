"""Secrets are removed from every text, and nothing else is."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rowcall.base.redaction import BLANK, fit_to_keep, redacted, storable

KEY = f"rc_0a1b2c3d_{'5e' * 32}"
WEB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodXNoIn0.hush-hush_hush"  # noqa: S105 - made up

ONE_MEGABYTE = 1_000_000

# Nothing here is timed, so a busy machine must not fail these tests.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# As environments hold them: no null character, and no white space at the ends that reading the setting would strip.
LONG_SECRETS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0*"), min_size=8, max_size=40)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hush@db:5432/app",
        "could not connect to postgresql://me:hush@db/app and gave up",
        "postgresql://me:hu@sh@db/app",
        "redis://:hush@cache",
        '["smtp://me:hush@mail","next"]',
        "host=db password=hush user=me",
        "host=db password='hush hush' user=me",
        r"host=db password='hu\'sh' user=me",
        "postgresql://db/app?user=me&password=hush&sslmode=require",
        "PGPASSWORD=hush psql",
        "Authorization: Bearer hush",
        "authorization: Basic aHVzaDpodXNo",
        "{'Authorization': 'Bearer hush'}",
        '{"authorization":"hush"}',
        "[('Authorization', 'Bearer hush')]",
        "sent Bearer hush-hush-hush-0123456789",
        "X-Api-Key: hush",
        f"unknown key {KEY}",
        "no such customer for sk_live_hush0123456789",
        "no such customer for sk_test_hush0123456789",
        "signed with whsec_hush0123456789",
        "signed with whsec_0123456789/hush+hush==",
        "signed with whsec_hu/sh0123456789",
        f"expired: {WEB_TOKEN}",
        "https://pay.example/charges?api_key=hush&amount=5",
        "https://pay.example/charges?amount=5&access_token=hush",
        '{"api_key": "hush", "amount": 5}',
        '{"client_secret":"hu\\"sh"}',
        r"{'password': 'hu\'sh', 'user': 'me'}",
        r'"{\"token\": \"hush\", \"amount\": 5}"',
        "{'password': 12345678}",
        "Login(user='me', password='hush')",
        "Login(user=me, password=hush)",
        "password='hush, and the text ends here",
        "db:\n  user: me\n  password: 'hush'\n",
        'password: "hu sh"',
    ],
)
def test_what_stands_where_secrets_stand_is_taken_out(text: str) -> None:
    shown = redacted(text, {})
    for secret in ("hu", "sh", "aHVzaDpodXNo", "5e5e", "12345678"):
        assert secret not in shown
    assert BLANK in shown


@pytest.mark.parametrize(
    "text",
    [
        "order 7: the shelf is empty",
        "payload: token: Missing data for required field, password: Not a valid string",
        "KeyError: 'token'",
        "the password is wrong, and the token: expired",
        "http://127.0.0.1:8000/v1/runs?email=me@example.com",
        "http://127.0.0.1:8000?email=me@example.com",
        "mail to me@example.com failed: see http://docs.example:80/a and ask you@example.com",
        "postgresql://me@db:5432/app",
        "Basic functionality of a bearer bond, and Bearer authentication-is-required here",
        "token=None, secret=null, password=False",
        '{"token": null, "max_tokens": 5}',
        "if token == expected:",
        "    token = request.headers.get(name)",
        "tokens=5 secret_name=x token_count=7",
        "rc_file_path and sk_live_ and eyJ and github_actions",
        "SELECT lease_no FROM rowcall.job_runs WHERE idempotency_key = 'mail:7'",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redacted(text, {}) == text


def test_what_is_left_still_says_whose_secret_it_was() -> None:
    assert redacted("postgresql://me:hush@db/app", {}) == "postgresql://me:***@db/app"
    assert redacted(f"unknown key {KEY}", {}) == "unknown key rc_0a1b2c3d_***"
    assert redacted('{"token": "hush", "n": 1}', {}) == '{"token": "***", "n": 1}'
    assert redacted("charge failed for sk_live_0123456789", {}) == "charge failed for sk_live_***"


@UNHURRIED
@given(secret=LONG_SECRETS, before=st.text(), after=st.text())
def test_no_secret_setting_survives_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    assume(len(secret) >= 8)
    url = f"postgresql://me:{quote(secret, safe='')}@db/app"
    for environment in ({"PGPASSWORD": secret}, {"DATABASE_URL": url}):
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1], url):
            shown = redacted(before + form + after, environment)
            assert secret not in shown
            assert form not in shown


@UNHURRIED
@given(secret=st.text("abc@:/?#[]%+ ", min_size=8, max_size=20), around=st.text("abc@:/?#[]%+ "))
def test_a_password_that_should_have_been_escaped_does_not_survive_either(secret: str, around: str) -> None:
    assume(secret == secret.strip())
    environment = {"DATABASE_URL": f"postgresql://me:{secret}@db/app"}
    assert secret not in redacted(f"{around}{secret}{around}", environment)


def test_a_short_secret_is_taken_out_as_a_word_and_a_tiny_one_only_from_its_place() -> None:
    assert redacted("my tree; street", {"PGPASSWORD": "tree"}) == "my ***; street"
    assert redacted("a tree: postgresql://me:a@db", {"PGPASSWORD": "a"}) == "a tree: postgresql://me:***@db"


def test_while_one_secret_takes_anothers_place_each_of_the_two_is_taken_out() -> None:
    environment = {"ROWCALL_WEBHOOK_SECRET": "old-and-hushed new-and-hushed"}
    for told in ("old-and-hushed", "new-and-hushed", "old-and-hushed new-and-hushed"):
        assert redacted(f"signed with {told}", environment) == "signed with ***"


def test_a_password_that_is_also_a_name_hides_no_name() -> None:
    environment = {"DATABASE_URL": "postgresql://postgres:postgres@db/app", "PGPASSWORD": "postgres"}
    told = "no connection to postgresql://postgres:postgres@db/app"
    assert redacted(told, environment) == "no connection to postgresql://postgres:***@db/app"


def test_the_secrets_in_force_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hush-hush@db/app")
    assert redacted("the server said hush-hush") == "the server said ***"
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:other-one@db/app")
    assert redacted("the server said hush-hush") == "the server said hush-hush"


def test_what_is_kept_can_be_stored_and_hides_no_secret_behind_what_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    assert storable("a\0b\ud800c é") == "ab?c é"
    assert fit_to_keep("the server said hush\0-hush") == "the server said ***"


@pytest.mark.timeout(60)  # an algorithm that reads a part of the text repeatedly would take hours
@pytest.mark.parametrize(
    "part",
    [
        "a",
        "://a:",
        "://a:@",
        "://",
        "password=",
        "password='",
        'password="\\',
        "password=)",
        "'password': ",
        "authorization: bearer ",
        "bearer a",
        "x-",
        "eyJ",
        "eyJaaaaaa.",
        "rc_00000000_",
        "sk_live_",
        " ",
        "\\",
    ],
)
def test_hostile_text_takes_no_longer_than_any_other(part: str) -> None:
    redacted((part * ONE_MEGABYTE)[:ONE_MEGABYTE], {"PGPASSWORD": "hush-hush"})
