"""An author's first app in an empty folder: README's code as printed, in a Flask-SQLAlchemy app."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT, rowcall

README = (ROOT / "README.md").read_text()

# The web process: it adds users, and enqueues their mails in the same transaction.
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


def write_app(folder: Path) -> None:
    """Write the README's block, each part into the file that its comment names, and the web process."""
    [block] = [
        text for text in re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S) if "@WELCOME.handler" in text
    ]
    (folder / "shop").mkdir()
    for text in block.split("\n# ")[0:]:
        named = re.match(r"(?:# )?(shop/\w+\.py)", text)
        assert named is not None, f"{text!r} names no file"
        (folder / named[1]).write_text(f"# {text.removeprefix('# ')}")
    (folder / "shop" / "web.py").write_text(WEB)


def test_readmes_lines_run_as_they_stand_beside_flask_sqlalchemy(tmp_path: Path, fresh_url: str) -> None:
    write_app(tmp_path)
    environment = {
        **os.environ,
        "DATABASE_URL": fresh_url,
        "ROWCALL_APP": "shop",
        "ROWCALL_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(tmp_path),
    }
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
