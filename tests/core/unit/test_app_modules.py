"""What is said of an app whose module is missing or cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rowcall.base.errors import DeclarationError
from rowcall.job_types import load_catalogue
from rowcall.job_types.catalogue import app_module


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The folder of an empty package, named after the test, because Python keeps what it has imported."""
    package = tmp_path / f"app_of_{request.node.name}"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_a_package_without_job_types_is_told_which_file_to_write(app: Path) -> None:
    with pytest.raises(DeclarationError) as raised:
        load_catalogue(app.name)
    assert str(raised.value) == (
        f"ROWCALL_APP is {app.name!r}, and there is no module {app.name}.job_types: write {app}/job_types.py"
    )


def test_a_package_without_handlers_is_told_which_file_to_write(app: Path) -> None:
    with pytest.raises(DeclarationError, match=f"no module {app.name}.handlers: write {app}/handlers.py$"):
        app_module(app.name, "handlers")


@pytest.mark.parametrize("name", ["job_types", "handlers"])
def test_an_app_in_one_file_is_told_to_make_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    app = f"app_in_one_file_for_{name}"
    (tmp_path / f"{app}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeclarationError) as raised:
        app_module(app, name)
    assert str(raised.value) == (
        f"ROWCALL_APP is {app!r}, which is the file {tmp_path}/{app}.py and not a package: make a package, such as"
        f" {tmp_path}/jobs/ with {name}.py, and set ROWCALL_APP=jobs"
    )


@pytest.mark.parametrize(
    ("line", "has_remedy"),
    [("from sqlalchemy import create_engine as e; e('postgresql+psycopg://')", True), ("import psycopg", False)],
    ids=["by_sqlalchemy", "by_the_app"],
)
def test_the_driver_that_sqlalchemy_misses_is_said_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, has_remedy: bool
) -> None:
    name = f"app_of_driver_{has_remedy}".lower()
    (tmp_path / name).mkdir()
    (tmp_path / name / "handlers.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    # As where it is not installed.
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DeclarationError, match="ModuleNotFoundError: .*psycopg") as raised:
        app_module(name, "handlers")
    assert ("write postgresql+psycopg2:// in your app's URL" in str(raised.value)) == has_remedy
