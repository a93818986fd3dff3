"""An app may pin an old SQLAlchemy beside a new marshmallow, and the other way round: its type checker stays content.

The newest of both are those of the lock, and the oldest of both those of test_lowest_versions.py.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packaging.installed import Environment
from tests.packaging.test_testing_page import write_app
from tests.packaging.test_thin_core import complaints_are_those_expected, write_team

CHECKED_WITH = ("flask-sqlalchemy", "mypy", "psycopg", "pytest", "types-psycopg2")


@pytest.mark.network
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pins", [("sqlalchemy<2.1", "marshmallow>=4"), ("sqlalchemy>=2.1", "marshmallow<4")])
def test_a_strict_type_checker_accepts_an_app(tmp_path: Path, wheel: Path, pins: tuple[str, str]) -> None:
    environment = Environment.create(tmp_path / "environment")
    environment.install(f"{wheel}[worker]", *pins, *(f"{name}=={version(name)}" for name in CHECKED_WITH))
    check = ("-m", "mypy", "--strict")

    write_team(tmp_path / "team")
    team = environment.run("python", *check, "team", folder=tmp_path)
    assert complaints_are_those_expected(team.stdout), team.stdout

    (tmp_path / "app").mkdir()
    write_app(tmp_path / "app")
    app = environment.run("python", *check, "--explicit-package-bases", ".", folder=tmp_path / "app")
    assert app.returncode == 0, app.stdout
