"""`rowcall new`: a small app to begin with."""

from __future__ import annotations

import importlib.util
import keyword
import shutil
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from rowcall.base.errors import RowcallError
from rowcall.job_types.declaration import NAME

TESTS = "tests"

# The file in template/ -> where it goes in the new folder.
FILES = {
    "job_types.py.txt": "{name}/job_types.py",
    "handlers.py.txt": "{name}/handlers.py",
    "test_app.py.txt": f"{TESTS}/test_{{name}}.py",
    "conftest.py.txt": "conftest.py",
    "pytest.ini.txt": "pytest.ini",
}

NEXT = """\
{name}/ has a job type, its handler, a schedule and a test.  Next:

  cd {name}
  export ROWCALL_APP={name}
  pytest               # runs the handler on a real PostgreSQL (pip install pytest)
  rowcall up           # starts PostgreSQL, the API and a worker

Then, in another terminal, in the same folder and with the same settings:

  rowcall enqueue {name}_weekly_report '{{"week": "2026-01-05"}}'
  rowcall runs list
"""


@click.command("new")
@click.argument("name")
def new_command(name: str) -> None:
    """Write a small app into the new folder NAME: a job type, its handler, a schedule and a test."""
    folder = Path(name)
    _check(name, folder)
    try:
        folder.mkdir()
    except OSError as error:
        sentence = f"{folder.absolute()} cannot be created: {error.strerror}; change to another folder"
        raise RowcallError(sentence) from None
    try:
        _write(name, folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RowcallError(f"{folder.absolute()} cannot be written: {error.strerror}") from None
    click.echo(NEXT.format(name=name), nl=False)


def _write(name: str, folder: Path) -> None:
    """Write the app's files into its new, empty folder."""
    (folder / name).mkdir()
    (folder / TESTS).mkdir()
    (folder / name / "__init__.py").touch()
    for source, target in FILES.items():
        template = Template(files(__package__).joinpath("template", source).read_text())
        words = {"name": name, "hyphenated": name.replace("_", "-")}
        (folder / target.format(name=name)).write_text(template.substitute(words))


def _check(name: str, folder: Path) -> None:
    """Refuse a name that could not be imported, or would hide another package."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise click.BadParameter(f"{name!r} is not a valid package name: use lower-case words such as my_shop")
    if name == TESTS:
        raise click.BadParameter(f"{name!r} is the folder of the app's tests: choose another name")
    if folder.exists():
        raise RowcallError(f"{folder.absolute()} exists: choose another name, or change to another folder")
    if importlib.util.find_spec(name) is not None:
        raise RowcallError(f"Python already has a package {name!r}, and would import that one: choose another name")
