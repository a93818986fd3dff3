"""docs/existing-app.md, moving.md and several.md: their blocks run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import fetch_value
from tests.support.page import Reader, blocks
from tests.support.processes import ROOT

# What the app had before.
MODELS = """
import os
from flask import Flask
from flask_sqlalchemy import SQLAlchemy

app = Flask("shop", root_path=os.path.dirname(__file__))
app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"]
db = SQLAlchemy(app)


class Cart(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    expires_at = db.Column(db.DateTime(timezone=True))


class Order(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    receipt_sent = db.Column(db.Boolean, default=False)


with app.app_context():
    db.create_all()
"""

ORDER = """
from shop import views
print(views.app.test_client().post("/orders").json)
"""


def test_an_existing_app_gets_its_first_job(tmp_path: Path, empty_url: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "models.py").write_text(MODELS)
    (tmp_path / "order.py").write_text(ORDER)
    for block in (*blocks("existing-app.md", "python"), *blocks("existing-app.md", "ini")):
        (tmp_path / block.splitlines()[0].removeprefix("# ")).write_text(block)
    install, migrate, work = blocks("existing-app.md", "sh")
    # This environment has what the first line installs, and the fixture's database in place of localhost's.
    driver = "postgresql+psycopg2:"
    assert install.splitlines()[1] == f"export DATABASE_URL={driver}//me@localhost/shop ROWCALL_APP=shop"
    folder = Reader(tmp_path, empty_url, ROWCALL_APP="shop")
    folder.environment["DATABASE_URL"] = empty_url.replace("postgresql:", driver, 1)
    assert "+ shop_nightly: new, shop_cleanup" in folder.type(migrate)
    assert folder.type(f"{sys.executable} -c 'import sys; sys.path.insert(0, \".\"); import order'") == "{'id': 1}\n"
    worked, listed, examined = (folder.type(f"{line} || true") for line in work.splitlines())
    assert "claimed 1, succeeded 1" in worked
    assert "shop_receipt" in listed
    assert re.search(r"ok +handlers", examined)
    with database.transaction(empty_url) as connection:
        assert fetch_value(connection, 'SELECT receipt_sent FROM "order"')
    assert len(list((tmp_path / ".rowcall" / "mail").iterdir())) == 1
    assert "1 passed" in folder.type(f"{sys.executable} -P -m pytest -q -p no:cacheprovider")
    assert len(list((tmp_path / ".rowcall" / "mail").iterdir())) == 1


def test_runs_of_a_removed_job_type_stay_until_they_are_cancelled(tmp_path: Path, fresh_url: str) -> None:
    [removed] = [block for block in blocks("jobs.md", "sh") if "runs cancel" in block]
    Reader(tmp_path).type("rowcall new shop")
    shop = tmp_path / "shop"
    with_type = Reader(shop, fresh_url, ROWCALL_APP="shop")
    with_type.type("""rowcall migrate && rowcall enqueue shop_weekly_report '{"week": "2026-01-05"}'""")
    without = Reader(shop, fresh_url, ROWCALL_APP="")
    assert "claimed 0" in without.type("rowcall worker once")
    said = without.type(removed.replace("shop_welcome", "shop_weekly_report"))
    assert "queued" in said
    assert "1 matched, 1 cancelled or asked to stop" in said


def test_the_lines_of_a_crontab_become_definitions(tmp_path: Path, fresh_url: str) -> None:
    [file] = blocks("moving.md", "toml")
    (tmp_path / "jobs.toml").write_text(file)
    dry, applied, preview = blocks("moving.md", "sh")[0].splitlines()
    folder = Reader(tmp_path, fresh_url, ROWCALL_APP="rowcall_example")
    assert "nightly: new" in folder.type(dry)
    assert "nightly: new" in folder.type(applied)
    assert folder.type(preview).count("02:30") >= 9


def test_a_copy_of_production_repeats_nothing(tmp_path: Path, fresh_url: str) -> None:
    _, emptied, roles = blocks("several.md", "sh")
    folder = Reader(tmp_path, fresh_url, ROWCALL_APP="")
    folder.type("rowcall enqueue noop")
    commands = emptied.replace("DATABASE_URL=postgresql://shop@db/shop_staging ", "")
    assert commands.count("rowcall") == 2
    assert folder.type(commands).startswith(
        "operation 1 is finished: 1 matched, 1 cancelled or asked to stop\n"
        "restore recorded; unfinished runs in the backup: 0"
    )
    assert "staging_worker" in folder.type(roles)


@pytest.mark.parametrize("page", ["existing-app.md", "moving.md", "several.md"])
def test_no_block_is_left_out(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert len(re.findall("^```[a-z]", text, re.M)) == sum(
        len(blocks(page, language)) for language in ("python", "sh", "toml", "ini")
    )
