"""`rowcall definitions` in the test process, on a database for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rowcall.cli import main
from tests.cli.definitions.saying import TOML, Said, Say


@pytest.fixture
def say(fresh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Return a function that runs `rowcall definitions` in this process, which is faster than a new one each time."""
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
    """The same, after a file was applied."""
    (tmp_path / "jobs.toml").write_text(TOML)
    assert say("apply", "jobs.toml").code == 0
    return say
