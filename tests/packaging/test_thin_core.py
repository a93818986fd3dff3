"""What a web process pays for enqueueing: three packages, and none of Rowcall's code that works, serves or reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api as mypy

import rowcall
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

# A team's module as its type checker reads it, and a last line that must be refused.
TYPED = """
from collections.abc import Mapping
from typing import Any
from marshmallow import Schema
from rowcall import JobType, enqueue, enqueue_many, exponential
from rowcall.base.database import Connection

def key(payload: Mapping[str, Any]) -> str:
    return "1"

WELCOME = JobType("welcome", schema=Schema, key=key, backoff=exponential(base=5, cap=60))

def welcome(connection: Connection) -> list[int]:
    first: int = enqueue(connection, "welcome", {}).run_id
    return [first, *(run.run_id for run in enqueue_many(connection, "welcome", [{}]))]

from rowcall import nonsense
"""


def modules_after(script: str, *arguments: str, flags: tuple[str, ...] = ()) -> set[str]:
    """The modules that a fresh process has loaded in the end."""
    variables = {name: value for name, value in os.environ.items() if name != "ROWCALL_APP"}
    printed = subprocess.check_output([sys.executable, *flags, "-c", script, *arguments], env=variables, text=True)
    return set(json.loads(printed))


def test_enqueueing_loads_the_cores_packages_and_the_rooms_of_the_queue_alone(module_url: str) -> None:
    modules = modules_after(ENQUEUE, module_url)
    optional = {"click", "alembic", "cronsim", "flask", "jinja2", "ruamel", "sqlalchemy", "PIL", "fpdf"}
    assert {name.partition(".")[0] for name in modules} & optional == set()
    ours = {name for name in modules if name.startswith("rowcall")}
    rooms = {".".join(name.split(".")[:2]) for name in ours}
    assert rooms <= {f"rowcall.{room}" for room in ("access", "base", "job_types", "queue", "status")} | {"rowcall"}


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


def test_a_teams_strict_type_checker_knows_the_public_names_and_no_others(tmp_path: Path) -> None:
    module = tmp_path / "team.py"
    module.write_text(TYPED)
    printed, _, _ = mypy.run(["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(module)])
    complaints = [line for line in printed.splitlines() if ": error:" in line]
    assert len(complaints) == 1, printed
    assert 'Module "rowcall" has no attribute "nonsense"' in complaints[0]
