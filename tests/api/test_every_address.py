"""The API, migrations and commands accept every form of database address that libpq does."""

from __future__ import annotations

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import logs, settings
from rowcall.base.redaction import redacted
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from tests.support.processes import rowcall

FORMS = {
    "several hosts": "postgresql://{user}:{password}@127.0.0.1:1,{host}:{port}/{dbname}?target_session_attrs=read-write",
    "keywords": "host={host} port={port} user={user} password='{password}' dbname={dbname}",
    "a query": "postgresql:///{dbname}?host={host}&port={port}&user={user}&password={password}",
    "another driver": "postgresql+psycopg2://{user}:{password}@{host}:{port}/{dbname}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_an_address_in_any_form_works_everywhere(fresh_url: str, environment: dict[str, str], form: str) -> None:
    written = form.format(**parse_dsn(fresh_url))
    address = settings.read({"DATABASE_URL": written}).database_url
    assert address is not None
    assert migrate(address, lock_timeout=3).steps == ()
    app = create_app(address)
    assert app.test_client().get("/readyz").status_code == 200
    app.extensions["database"].dispose()
    logs.use(logs.Log())
    done = rowcall({**environment, "DATABASE_URL": written}, "enqueue", "noop", "{}")
    assert (done.returncode, done.stdout) == (0, "run 1 queued\n"), done.stderr


REFUSED = ["postgresql://db/shop?nonsense=1", "host=db nonsense=1", "postgresql://[::1/shop"]


@pytest.mark.parametrize("address", REFUSED)
@pytest.mark.parametrize("words", [("api", "--port", "0"), ("migrate",), ("worker", "once"), ("runs", "list")])
def test_an_address_that_libpq_refuses_is_a_sentence_everywhere(
    environment: dict[str, str], address: str, words: tuple[str, ...]
) -> None:
    refused = rowcall({**environment, "DATABASE_URL": address}, *words)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("rowcall: no connection to ")
    assert "invalid dsn" in refused.stderr
    assert "check DATABASE_URL" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_the_password_of_an_address_in_keywords_is_shown_nowhere() -> None:
    address = {"DATABASE_URL": "host=db user=me password='hush hush' dbname=app"}
    assert redacted("me at db said hush hush to app", address) == "me at db said *** to app"
