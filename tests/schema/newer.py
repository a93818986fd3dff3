"""The next version of Rowcall: a copy of the tree with one more migration; its commands run beside ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from rowcall.schema import REVISION
from tests.support.processes import ROOT

PACKAGES = ("shared", "api", "worker", "migrations", "example")

NEXT = f"{int(REVISION) + 1:04}"

MIGRATION = f"""
\"\"\"A note beside each run, and where to find it.\"\"\"

from alembic import op

revision = "{NEXT}"
down_revision = "{REVISION}"
fits = "{{fits}}"

indexes = {{{{"job_runs_note": "CREATE INDEX CONCURRENTLY IF NOT EXISTS job_runs_note ON rowcall.job_runs (note)"}}}}


def upgrade() -> None:
    op.execute("ALTER TABLE rowcall.job_runs ADD COLUMN note text")


def downgrade() -> None:
    op.execute("ALTER TABLE rowcall.job_runs DROP COLUMN note")
"""

INDEX_IS_VALID = """
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('rowcall.job_runs_note')
"""


def newer_rowcall(folder: Path, environment: Mapping[str, str], fits: str = REVISION) -> dict[str, str]:
    """Return the environment of its commands; `fits` is the oldest revision whose code works after its migration."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    versions = folder / "migrations" / "rowcall_migrations" / "versions"
    (versions / f"{NEXT}_note.py").write_text(MIGRATION.format(fits=fits))
    revision = folder / "shared" / "rowcall" / "schema" / "revision.py"
    revision.write_text(revision.read_text().replace(f'REVISION = "{REVISION}"', f'REVISION = "{NEXT}"'))
    path = os.pathsep.join(str(folder / package) for package in PACKAGES)
    return {**environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
