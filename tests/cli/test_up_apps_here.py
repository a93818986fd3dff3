"""`rowcall up` without ROWCALL_APP in the folder of an app."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rowcall.base.child_processes import own_command
from rowcall.cli.up.apps_here import apps_in
from rowcall.cli.up.demo import is_installed
from tests.support.processes import LIMIT_SECONDS

PYPROJECT = "[tool.pytest.ini_options]\nrowcall_app = 'store'\n"


def test_up_refuses_the_example_in_the_folder_of_an_app_before_anything_starts(tmp_path: Path) -> None:
    assert is_installed()
    home = tmp_path / "home"
    environment = {name: value for name, value in os.environ.items() if name not in ("ROWCALL_APP", "DATABASE_URL")}
    environment["ROWCALL_HOME"] = str(home)

    def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            own_command(*words),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )

    assert typed(tmp_path, "new", "store").returncode == 0
    refused = typed(tmp_path / "store", "up", "--yes", "--port", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "rowcall: this folder contains the app store: `export ROWCALL_APP=store`; to see the example,"
        " `ROWCALL_APP=rowcall_example rowcall up`\n"
    )
    assert not home.exists()


@pytest.mark.parametrize(
    ("file", "text", "apps"),
    [
        ("store/job_types.py", "from rowcall import JobType\n", ["store"]),
        ("store/job_types.py", "KINDS = ['a', 'rowcall']\n", []),
        ("store-2/job_types.py", "import rowcall\n", []),
        ("pytest.ini", "[pytest]\nrowcall_app = store\naddopts = -q %(x)s\n", ["store"]),
        ("pytest.ini", "rowcall_app = store\n", []),
        ("pyproject.toml", PYPROJECT, ["store"]),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", []),
        ("pyproject.toml", "[broken\n", []),
        ("README.md", "rowcall_app = store\n", []),
    ],
)
def test_an_app_is_a_package_with_job_types_or_what_pytest_is_told(
    tmp_path: Path, file: str, text: str, apps: list[str]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert apps_in(tmp_path) == apps
