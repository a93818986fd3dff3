"""A definition in the code that cannot be applied: the schema is migrated, and the command says both."""

from __future__ import annotations

from pathlib import Path

from rowcall.schema import REVISION
from tests.support.processes import rowcall

APP = """
from marshmallow import Schema

from rowcall import Definition, JobType


class Nothing(Schema):
    pass


CLEAN = JobType("bad_clean", schema=Nothing)
NIGHTLY = Definition("nightly", CLEAN, schedule="61 2 * * *")
"""


def test_what_was_migrated_is_said_before_what_could_not_be_applied(
    environment: dict[str, str], empty_url: str, tmp_path: Path
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "job_types.py").write_text(APP)
    here = {**environment, "DATABASE_URL": empty_url, "ROWCALL_APP": "bad", "PYTHONPATH": str(tmp_path)}
    done = rowcall(here, "migrate")
    assert done.returncode == 1
    assert done.stdout.startswith(f"the schema was empty, and is now {REVISION}:\n")
    assert "the code: nothing was applied" in done.stderr
    assert "minute '61'" in done.stderr
