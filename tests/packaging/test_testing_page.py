"""docs/testing.md: its app is written block by block, and a real pytest and a strict mypy check it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rowcall_worker.testing import Rowcall
from tests.support.processes import ROOT
from tests.worker.testing.conftest import environment_for, run_pytest

PAGE = (ROOT / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def write_app(folder: Path) -> None:
    """Write every block into the file that its first line names; a later block replaces an earlier one."""
    for language, text in BLOCKS:
        named = re.match(r"# ([\w/]+\.(?:py|ini))\n", text)
        assert named is not None, f"a block of {language} names no file"
        file = folder / named[1]
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def test_every_block_is_run(tmp_path: Path, server_url: str) -> None:
    write_app(tmp_path)
    done = run_pytest(tmp_path, environment_for(server_url), "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{PAGE.count('def test_')} passed" in done.stdout


def test_a_strict_type_checker_accepts_every_block(tmp_path: Path, mypy_cache: str) -> None:
    write_app(tmp_path)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", mypy_cache, "--explicit-package-bases", "."]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_names_all_that_the_fixture_offers() -> None:
    offered = {name for name in vars(Rowcall) if not name.startswith("_")} - {"close"}
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`(\w+)", table))
    assert offered <= named
