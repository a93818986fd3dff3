"""rowcall_worker.testing: the bakery's checks are its specification, and a real pytest runs them."""

from __future__ import annotations

from pathlib import Path

from tests.worker.testing.conftest import run_pytest


def test_the_bakerys_checks_pass(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    done = run_pytest(bakery, environment_of_tests, "bakery/checks.py", "bakery/checks_enqueued.py")
    assert done.returncode == 0, done.stdout + done.stderr
