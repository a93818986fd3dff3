"""The tree stays readable: no file is long, no folder of the product has many files, and its version is its own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from rowcall import __version__
from tests.support.processes import ROOT

# A newcomer can read a file of this length at one sitting, and see a folder of this size at a glance.
LINES = 300
FILES = 16


def packages() -> Iterator[Path]:
    """Yield the folder of each package in the wheel."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in wheel["packages"]:
        assert (ROOT / package).is_dir(), package
        yield ROOT / package


def test_every_file_is_below_300_lines() -> None:
    folders = [*packages(), ROOT / "tests"]
    written = [file for folder in folders for suffix in ("py", "html", "sql") for file in folder.rglob(f"*.{suffix}")]
    assert written
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in written}
    assert {file: length for file, length in lengths.items() if length >= LINES} == {}


def test_no_folder_of_the_product_has_more_than_16_files() -> None:
    folders = {file.parent for package in packages() for file in package.rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): sum(entry.is_file() for entry in folder.iterdir()) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > FILES} == {}


def test_the_version_is_the_newest_of_the_changelog_or_a_development_version_after_it() -> None:
    newest, released = re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[:2]
    if newest == "Unreleased":
        base, development, _ = __version__.partition(".dev0")
        assert development, "what is not released yet must not have the version of a release"
        assert numbers(base) > numbers(released)
    else:
        assert __version__ == newest


def test_each_version_begins_with_a_numbered_list_of_what_its_user_must_do() -> None:
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    for version in versions:
        name, first = re.findall(r"\A(.+)\n\n### (.+)$", version, re.MULTILINE)[0]
        assert first == "What you must do", name
        steps = [int(step) for step in re.findall(r"^(\d+)\. ", version.split("\n### ")[1], re.MULTILINE)]
        assert steps == [*range(1, len(steps) + 1)] != [], name
        assert "`rowcall migrate`" in version.split("\n### ")[1], name


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
