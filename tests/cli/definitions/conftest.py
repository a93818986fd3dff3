"""`rowcall definitions` in this process, on a database of the test's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rowcall.cli import main
from tests.cli.definitions.saying import TOML, Said, Say


@pytest.fixture
def say(fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """`rowcall definitions` on a database of this test's own, in this process: a new one each time would be slow."""
    monkeypatch.setenv("DATABASE_URL", fresh_url)
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["rowcall", "definitions", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        return Said(int(ended.value.code or 0), *capsys.readouterr())

    return said


@pytest.fixture
def applied(say: Say, tmp_path: Path) -> Say:
    """The same, where a file has been applied."""
    (tmp_path / "jobs.toml").write_text(TOML)
    assert say("apply", "jobs.toml").code == 0
    return say
