"""Finds apps in the current folder, because `up` does not start the example in the folder of another app."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rowcall.base.errors import RowcallError

# A module of job types is an app's only if it imports Rowcall.
IMPORTS_ROWCALL = re.compile(r"^\s*(from|import) rowcall\b", re.MULTILINE)


def refuse_apps_here(folder: Path, example: str | None) -> None:
    """Refuse to start without ROWCALL_APP in the folder of an app, which would not be served.

    `example` is the package of the example, if it is installed.
    """
    found = [name for name in apps_in(folder) if name != example]
    if not found:
        return
    apps = "the app" if len(found) == 1 else "the apps"
    sentence = f"this folder contains {apps} {', '.join(found)}: `export ROWCALL_APP={found[0]}`"
    raise RowcallError(f"{sentence}; to see the example, `ROWCALL_APP={example} rowcall up`" if example else sentence)


def apps_in(folder: Path) -> list[str]:
    """Return the app that pytest's configuration names, or else the packages with job types."""
    # Pytest itself complains about a broken file.
    with suppress(OSError, ValueError, AttributeError, configparser.Error):
        if named := next(_named(folder), ""):
            return [named]
    with suppress(OSError):
        return sorted(file.parent.name for file in folder.glob("*/job_types.py") if _is_app(file))
    return []


def _named(folder: Path) -> Iterator[str]:
    """Yield the values of `rowcall_app` in pytest.ini and pyproject.toml."""
    written = configparser.ConfigParser(interpolation=None)
    written.read(folder / "pytest.ini")
    if named := written.get("pytest", "rowcall_app", fallback=""):
        yield named
    if (project := folder / "pyproject.toml").exists():
        options = tomllib.loads(project.read_text()).get("tool", {}).get("pytest", {}).get("ini_options", {})
        if named := options.get("rowcall_app", ""):
            yield str(named)


def _is_app(file: Path) -> bool:
    return file.parent.name.isidentifier() and bool(IMPORTS_ROWCALL.search(file.read_text(errors="replace")))
