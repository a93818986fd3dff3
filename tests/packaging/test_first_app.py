"""An author's first app, in an empty folder: the pages' lines as they stand, enqueued by a Flask-SQLAlchemy app."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.page import blocks
from tests.support.processes import ROOT, rowcall, running

README = ROOT / "README.md"
JOBS = ROOT / "docs" / "jobs.md"

# What README's shop/web.py has of its own.
MODELS = """
import os
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg2:", 1)
db = SQLAlchemy(app)


class User(db.Model):
    id = db.Column(db.Integer, primary_key=True)


with app.app_context():
    db.create_all()
"""

SIGN_UP = """
import json
from shop.web import app
print(json.dumps([app.test_client().post("/users").json["id"] for _ in range(2)]))
"""

# The web process: it adds users, and enqueues their emails in the same transaction.
WEB = """
import os
from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from rowcall import enqueue
from shop.job_types import WELCOME

app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg2:", 1)
db = SQLAlchemy(app)


class User(db.Model):
    id = db.Column(db.Integer, primary_key=True)


@app.post("/users")
def sign_up():
    users = [User(), User(), User()]
    db.session.add_all(users)
    db.session.flush()
    ids = [user.id for user in users]
    first = WELCOME.enqueue(db.session, {"user_id": ids[0]}, run_at=None, key=None)
    again = WELCOME.enqueue_many(db.session, [{"user_id": ids[0]}, {"user_id": ids[1]}])
    named = enqueue(db.session, "shop_welcome", {"user_id": ids[2]})
    db.session.commit()
    return [[run.run_id, run.replayed] for run in (first, *again, named)]


with app.app_context():
    db.create_all()
print(app.test_client().post("/users").text)
"""


def write_app(folder: Path, page: Path) -> None:
    """The page's block, each part in the file that its comment names."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    [block] = [text for text in blocks if "@WELCOME.handler" in text]
    (folder / "shop").mkdir()
    for text in re.split(r"\n# (?=shop/)", block):
        named = re.match(r"(?:# )?(shop/\w+\.py)", text)
        assert named is not None, f"{text!r} names no file"
        (folder / named[1]).write_text(f"# {text.removeprefix('# ')}")


@pytest.fixture
def here(tmp_path: Path, fresh_url: str) -> dict[str, str]:
    """The environment of the app's processes."""
    return {
        **os.environ,
        "DATABASE_URL": fresh_url,
        "ROWCALL_APP": "shop",
        "ROWCALL_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(tmp_path),
    }


# What precedes the lines that enqueue.
BEFORE = """
import os, psycopg2
from shop.job_types import WELCOME
DATABASE_URL = os.environ["DATABASE_URL"]
"""


def test_an_app_waits_for_a_result_with_the_lines_of_the_page(tmp_path: Path, here: dict[str, str]) -> None:
    write_app(tmp_path, JOBS)
    [block] = [text for text in blocks("jobs.md", "python") if ".result(connection" in text]
    with running(here, "worker", "run"):
        printed = subprocess.check_output([sys.executable, "-c", BEFORE + block], env=here, cwd=tmp_path, text=True)
    assert printed == "{'greeted': 1}\n"


def test_an_app_enqueues_many_runs_with_the_lines_of_the_page(tmp_path: Path, here: dict[str, str]) -> None:
    write_app(tmp_path, JOBS)
    [block] = [text for text in blocks("jobs.md", "python") if ".enqueue_many(connection" in text]
    subprocess.check_output([sys.executable, "-c", BEFORE + block], env=here, cwd=tmp_path, text=True)
    assert "claimed 1000, succeeded 1000" in rowcall(here, "worker", "once").stdout


def test_readmes_app_sends_one_mail_to_each_new_user(tmp_path: Path, here: dict[str, str]) -> None:
    write_app(tmp_path, README)
    (tmp_path / "shop" / "models.py").write_text(MODELS)
    printed = subprocess.check_output([sys.executable, "-c", SIGN_UP], env=here, cwd=tmp_path, text=True)
    assert rowcall(here, "worker", "once").returncode == 0
    sent = json.loads(rowcall(here, "effects", "list", "--json").stdout)
    assert sorted((effect["key"], effect["state"]) for effect in sent) == [
        (f"welcome:{user_id}", "applied") for user_id in json.loads(printed)
    ]


def test_the_lines_of_the_page_about_jobs_run_as_they_stand_beside_flask_sqlalchemy(
    tmp_path: Path, here: dict[str, str]
) -> None:
    write_app(tmp_path, JOBS)
    (tmp_path / "shop" / "web.py").write_text(WEB)
    environment = here
    printed = subprocess.check_output([sys.executable, "-m", "shop.web"], env=environment, cwd=tmp_path, text=True)
    (first, *_), (again, replayed), (second, _), (third, _) = json.loads(printed)
    assert (again, replayed) == (first, True)
    worked = rowcall(environment, "worker", "once")
    assert worked.returncode == 0, worked.stderr
    for run_id, user_id in zip((first, second, third), (1, 2, 3), strict=True):
        run = json.loads(rowcall(environment, "runs", "show", str(run_id), "--json").stdout)
        assert (run["status"], run["result"]) == ("succeeded", {"greeted": user_id})
    sent = json.loads(rowcall(environment, "effects", "list", "--json").stdout)
    assert sorted((effect["kind"], effect["key"], effect["state"]) for effect in sent) == [
        ("sent_emails", f"welcome:{user_id}", "applied") for user_id in (1, 2, 3)
    ]
