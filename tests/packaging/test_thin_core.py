"""Enqueuing costs a web process three packages, and none of Rowcall's code that works, serves or reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api as mypy

import rowcall
from rowcall.base import database
from tests.support.processes import ROOT

ENQUEUE = """
import json, sys
import psycopg2
from rowcall import JobType, enqueue
connection = psycopg2.connect(sys.argv[1])
enqueue(connection, "noop", {})
connection.commit()
print(json.dumps(sorted(sys.modules)))
"""

# A web process that declares what it enqueues; its settings are invalid.
ENQUEUE_BY_TYPE = """
import json, os, sys
os.environ.update(ROWCALL_CONCURRENCY="many", ROWCALL_SMTP_URL="nonsense", DATABASE_URL="nowhere")
import psycopg2
from marshmallow import Schema, fields
from rowcall import JobType, Permanent, Retry, Snooze, exponential

class Welcome(Schema):
    user_id = fields.Integer(required=True)

WELCOME = JobType("shop_welcome", schema=Welcome, key=lambda payload: str(payload["user_id"]), queue="mail")

with psycopg2.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE IF NOT EXISTS users AS SELECT 1 AS id")
    WELCOME.enqueue(connection, {"user_id": 1})
    WELCOME.enqueue_many(connection, [{"user_id": 1}, {"user_id": 2}])
print(json.dumps(sorted(sys.modules)))
"""

# Code for processes that work, serve or report, or for a local PostgreSQL.
NOT_OF_A_WEB_PROCESS = (
    *("rowcall_api", "rowcall_worker", "rowcall_migrations", "rowcall_example"),
    *("rowcall.local_postgres", "rowcall.cli", "rowcall.definitions", "rowcall.queue.views.stats"),
)

# A team's app for its type checker: file -> text.  The last lines must be refused.
TYPED = {
    "job_types.py": """
from marshmallow import Schema, fields
from rowcall import Definition, EffectKind, JobType, exponential

SMS = EffectKind("shop_sms", policy="at_most_once")
REFUND = EffectKind("shop_refund", policy="provider_key", horizon=24 * 3600)

class Welcome(Schema):
    user_id = fields.Integer(required=True)

WELCOME = JobType(
    "shop_welcome", schema=Welcome, key=lambda payload: f"{payload['user_id']}",
    queue="mail", max_attempts=8, lease=60, time_limit=30, backoff=exponential(base=5, cap=3600),
)
DAILY = Definition("daily", WELCOME, "@daily", payload={"user_id": 1})
""",
    "handlers.py": """
from rowcall import OutcomeUnknown, Permanent, Refused, Retry, Run, Snooze, Unavailable
from sqlalchemy import Connection, select
from sqlalchemy.orm import Session, sessionmaker
from .job_types import SMS, WELCOME

class ShopSession(Session):
    def order(self, number: int) -> None: ...

MAKER = sessionmaker(expire_on_commit=False)

@WELCOME.handler
def welcome(run: Run) -> dict[str, int]:
    run.progress(0.5, "writing")
    if run.attempt > 3:
        raise Permanent("no such user")
    run.effect(
        "sent_emails", key=f"welcome:{run.payload['user_id']}", content={"template": "welcome"},
        perform=lambda effect: run.gateways.mail.send(
            to="ada@example.com", subject="Welcome", text="Hello", message_id=effect.message_id
        ),
    )
    with run.step(as_=Session) as session:
        session.execute(select(1)).scalar_one()
    with run.step(as_=MAKER) as session:
        session.flush()
    with run.step(as_=ShopSession) as shops:
        shops.order(1)
    with run.step(as_=Connection) as connection:
        connection.execute(select(1))
    with run.transaction({"greeted": 1}) as driver, driver.cursor() as cursor:
        cursor.execute("SELECT 1")
    text = run.effect(SMS, key="1", content={}, perform=lambda effect: effect.idempotency_key)
    return {"greeted": run.payload["user_id"], "length": len(text.reference or "")}
""",
    "web.py": """
import psycopg
import psycopg2.extensions
from datetime import datetime
from sqlalchemy import Connection
from sqlalchemy.orm import Session, scoped_session
from rowcall import enqueue, enqueue_many
from .handlers import ShopSession, welcome
from .job_types import WELCOME

Driver = psycopg2.extensions.connection | psycopg.Connection
Held = Driver | Connection | Session | scoped_session[Session] | scoped_session[ShopSession]

def order(connection: Held) -> list[int]:
    first: int = WELCOME.enqueue(connection, {"user_id": 1}, run_at=None, key=None).run_id
    second = WELCOME.enqueue(connection, {"user_id": 1}, key="a", run_at=datetime.now(), queue="mail", priority=1)
    many = WELCOME.enqueue_many(connection, [{"user_id": 1}, {"user_id": 2}], keys=["a", None], max_attempts=1)
    named = enqueue(connection, "shop_welcome", {"user_id": 1}, created_by="web")
    more = enqueue_many(connection, "shop_welcome", [{}])
    return [first, second.run_id, named.run_id, *(run.run_id for run in many + more if not run.replayed)]

greeted: dict[str, int]

def again(run: "Run") -> None:
    global greeted
    greeted = welcome(run)

from rowcall import EffectKind, Run
from rowcall import nonsense
WELCOME.enqueue("postgresql://shop", {})
WELCOME.enqueue(psycopg2.connect(""), {}, prioritee=1)
WELCOME.handler(lambda: None)
EffectKind("fax", policy="maybe")
""",
}

REFUSED = (
    'Module "rowcall" has no attribute "nonsense"',
    'Argument 1 to "enqueue" of "JobType" has incompatible type "str"',
    'Unexpected keyword argument "prioritee" for "enqueue" of "JobType"',
    'of "handler" of "JobType" cannot be "Callable[[], None]"',
    'Argument "policy" to "EffectKind" has incompatible type',
)


def modules_after(script: str, *arguments: str, flags: tuple[str, ...] = ()) -> set[str]:
    """Return the modules that a fresh process has imported at its end."""
    variables = {name: value for name, value in os.environ.items() if name != "ROWCALL_APP"}
    printed = subprocess.check_output([sys.executable, *flags, "-c", script, *arguments], env=variables, text=True)
    return set(json.loads(printed))


def test_enqueuing_loads_the_cores_packages_and_the_rooms_of_the_queue_alone(module_url: str) -> None:
    modules = modules_after(ENQUEUE, module_url)
    optional = {"click", "alembic", "cronsim", "flask", "jinja2", "rich", "ruamel", "sqlalchemy", "PIL", "fpdf"}
    assert {name.partition(".")[0] for name in modules} & optional == set()
    ours = {name for name in modules if name.startswith("rowcall")}
    rooms = {".".join(name.split(".")[:2]) for name in ours}
    assert rooms <= {f"rowcall.{room}" for room in ("access", "base", "job_types", "queue", "status")} | {"rowcall"}


def test_enqueuing_by_type_needs_no_app_no_setting_and_no_module_of_another_process(fresh_url: str) -> None:
    modules = modules_after(ENQUEUE_BY_TYPE, fresh_url)
    assert {name for name in modules if name.startswith(NOT_OF_A_WEB_PROCESS)} == set()
    assert {name.partition(".")[0] for name in modules} & {
        "flask",
        "sqlalchemy",
        "psycopg",
        "click",
        "alembic",
    } == set()
    with database.transaction(fresh_url) as connection:
        rows = database.fetch_all(connection, "SELECT job_type, natural_key, queue FROM rowcall.job_runs ORDER BY id")
        assert database.fetch_value(connection, "SELECT count(*) FROM users") == 1
    assert rows == [{"job_type": "shop_welcome", "natural_key": key, "queue": "mail"} for key in ("1", "2")]


def test_a_worker_loads_no_client_of_a_broker_unless_a_job_type_hands_over() -> None:
    script = "import json, sys, rowcall_worker.runtime.worker; print(json.dumps([*sys.modules]))"
    modules = modules_after(script)
    assert "rowcall_worker.runtime.handover.publisher" in modules
    assert {"kombu", "amqp", "celery"} & modules == set()


def test_importing_rowcall_loads_nothing_before_it_is_used() -> None:
    script = (
        "import sys; before = set(sys.modules); import rowcall, json; print(json.dumps([*set(sys.modules) - before]))"
    )
    assert {name for name in modules_after(script) if name.partition(".")[0] not in sys.stdlib_module_names} == {
        "rowcall"
    }


def test_importing_rowcall_needs_the_standard_library_alone() -> None:
    script = "import json, sys; sys.path.insert(0, sys.argv[1]); import rowcall; print(json.dumps([*sys.modules]))"
    assert "rowcall" in modules_after(script, str(ROOT / "shared"), flags=("-I", "-S"))


@pytest.mark.parametrize("name", rowcall.__all__)
def test_every_public_name_can_be_imported_and_is_listed(name: str) -> None:
    assert getattr(rowcall, name).__name__ == name
    assert name in dir(rowcall)


def test_a_name_that_rowcall_lacks_is_an_attribute_error_as_anywhere() -> None:
    with pytest.raises(AttributeError, match="module 'rowcall' has no attribute 'nonsense'"):
        getattr(rowcall, "nonsense")  # noqa: B009 - mypy knows that there is none


def write_team(folder: Path) -> None:
    """Write the team's package."""
    folder.mkdir()
    for name, text in {"__init__.py": "", **TYPED}.items():
        (folder / name).write_text(text)


def complaints_are_those_expected(printed: str) -> bool:
    """Whether a type checker has refused what it must refuse, and nothing else."""
    complaints = [line for line in printed.splitlines() if ": error:" in line]
    return len(complaints) == len(REFUSED) and all(map(str.__contains__, complaints, REFUSED))


def test_a_teams_strict_type_checker_knows_the_public_names_and_no_others(tmp_path: Path, mypy_cache: str) -> None:
    write_team(tmp_path / "team")
    printed, _, _ = mypy.run(["--strict", "--config-file=", mypy_cache, str(tmp_path / "team")])
    assert complaints_are_those_expected(printed), printed
