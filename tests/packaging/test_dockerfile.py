"""The Dockerfile: what it sets for the image, and its own steps, run without a container engine."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import click
import pytest

from rowcall.base import settings
from rowcall.cli.main import rowcall
from rowcall.schema import REVISION
from tests.support.processes import LIMIT_SECONDS, ROOT

# This machine's Python replaces the image's.
PYTHON_FIRST = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))

INSTALLED_NAMES = "from importlib.metadata import distributions as all; print(*(d.metadata['Name'] for d in all()))"


@dataclass(frozen=True)
class Step:
    """An instruction."""

    keyword: str
    text: str

    @property
    def words(self) -> list[str]:
        """Return its arguments, in either notation."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)


def stages() -> list[list[Step]]:
    """Return the steps of each stage, starting with its FROM."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    found: list[list[Step]] = []
    for line in filter(None, text.splitlines()):
        keyword, _, rest = line.partition(" ")
        if keyword == "FROM":
            found.append([])
        found[-1].append(Step(keyword, rest.strip()))
    return found


BUILD, FINAL = stages()


def only(keyword: str, stage: Sequence[Step] = FINAL) -> Step:
    """Return the only step of this kind."""
    (step,) = [step for step in stage if step.keyword == keyword]
    return step


def environment() -> dict[str, str]:
    """Return the variables that the image sets; its PATH is added to that of the base image."""
    return dict(setting.split("=", 1) for setting in only("ENV").words)


def reaches_the_builder(path: PurePosixPath) -> bool:
    """Whether .dockerignore includes this file: the last pattern that matches it, or a folder above it, decides."""
    admitted = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if pattern and not pattern.startswith("#"):
            above = [*path.parents][:-1]
            names = [part.name if pattern.startswith("**/") else str(part) for part in (path, *above)]
            if any(fnmatch.fnmatch(name, pattern.removeprefix("**/")) for name in names):
                admitted = line.startswith("!")
    return admitted


@dataclass
class Builder:
    """Runs steps in a folder that replaces the image's file system."""

    root: Path
    folder: Path

    def at(self, path: str) -> Path:
        """Return the place of an image's path in the folder."""
        return self.root / path[1:] if path.startswith("/") else self.folder / path

    def moved(self, text: str) -> str:
        """Return the text with the image's folders replaced by those in the folder."""
        return re.sub(r"(?<![\w./])/(?=(opt|build|app)\b)", f"{self.root}/", text)

    def carry_out(self, step: Step) -> None:
        """Run a step of the build stage."""
        if step.keyword == "WORKDIR":
            self.folder = self.at(step.text)
            self.folder.mkdir(parents=True)
        elif step.keyword == "COPY":
            *sources, target = step.words
            for source in sources:
                self._copy(source, target)
        elif step.keyword == "RUN":
            self._run(step.text)
        else:
            assert step.keyword == "FROM", f"this test does not know {step.keyword} in the build stage"

    def _copy(self, source: str, target: str) -> None:
        if (ROOT / source).is_dir():
            files = [file.relative_to(ROOT) for file in (ROOT / source).rglob("*") if file.is_file()]
            places = {file: self.at(target) / file.relative_to(source) for file in files}
        else:
            place = self.at(target)
            places = {Path(source): place / Path(source).name if target.endswith("/") else place}
        for file, place in places.items():
            if reaches_the_builder(PurePosixPath(file)):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, place)

    def _run(self, script: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", self.moved(script)],
            cwd=self.folder,
            env={**os.environ, "PATH": PYTHON_FIRST},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@dataclass(frozen=True)
class Image:
    """The final stage, with what the build stage has produced."""

    builder: Builder

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return a process's variables: the image's and the given ones, without HOME."""
        told = {name: self.builder.moved(value.replace("$PATH", os.defpath)) for name, value in environment().items()}
        return {**told, **given}

    def start(self, *command: str, **given: str) -> subprocess.Popen[str]:
        """Start the entry point with a command."""
        environment = self.environment(given)
        program, *arguments = *only("ENTRYPOINT").words, *command
        where = shutil.which(program, path=environment["PATH"])
        assert where is not None
        return subprocess.Popen(
            [where, *arguments],
            cwd=self.builder.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def output(self, *command: str, **given: str) -> str:
        """Return a command's output, and assert that it succeeded."""
        with self.start(*command, **given) as process:
            output = process.communicate(timeout=LIMIT_SECONDS)[0]
        assert process.returncode == 0, output
        return output


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Run the build stage in an empty folder, and keep only what the final stage copies."""
    builder = Builder(tmp_path_factory.mktemp("image"), Path("/"))
    for step in BUILD:
        builder.carry_out(step)
    taken = only("COPY").words[1]
    for folder in builder.root.iterdir():
        if not builder.at(taken).is_relative_to(folder):
            shutil.rmtree(folder)
    builder.carry_out(only("WORKDIR"))
    yield Image(builder)
    shutil.rmtree(builder.root)


def files_of(image: Image) -> dict[Path, tuple[int, int]]:
    """Return every file and folder with its size and mtime."""
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in image.builder.root.rglob("*")}


def locked(name: str) -> set[str]:
    """Return the names in a lock file."""
    return set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements" / f"{name}.lock").read_text(), re.MULTILINE))


@pytest.mark.network
@pytest.mark.timeout(600)
def test_its_steps_install_a_rowcall_with_the_locked_packages_and_no_others(image: Image) -> None:
    assert image.output("--version") == f"rowcall, version {version('rowcall')}\n"
    shown = re.findall(r"^  ([a-z-]+) ", image.output("--help").partition("Commands:")[2], re.MULTILINE)
    assert shown == rowcall.list_commands(click.Context(rowcall))
    python = image.builder.at(f"{only('COPY').words[1]}/bin/python")
    printed = subprocess.check_output([python, "-c", INSTALLED_NAMES], env=image.environment({}), text=True)
    names = {re.sub(r"[._]", "-", name).lower() for name in printed.split()}
    assert names == locked("runtime") | {"rowcall"}


@pytest.mark.network
@pytest.mark.timeout(600)
def test_the_installed_rowcall_migrates_works_and_serves_without_writing_a_file(image: Image, empty_url: str) -> None:
    before = files_of(image)
    assert f"is now {REVISION}" in image.output("migrate", DATABASE_URL=empty_url)
    assert "claimed 0" in image.output("worker", "once", DATABASE_URL=empty_url)
    with image.start(
        *only("CMD").words, DATABASE_URL=empty_url, ROWCALL_API_HOST="127.0.0.1", ROWCALL_API_PORT="0"
    ) as api:
        try:
            assert api.stdout is not None
            url = json.loads(api.stdout.readline())["url"]
            with urllib.request.urlopen(f"{url}/readyz", timeout=LIMIT_SECONDS) as answer:  # noqa: S310 - http, as told
                assert answer.status == 200
        finally:
            api.send_signal(signal.Signals[only("STOPSIGNAL").text])
            api.communicate(timeout=LIMIT_SECONDS)
    assert api.returncode == 0
    assert files_of(image) == before


def test_what_one_stage_installs_the_other_finds_in_the_same_place_with_the_same_python() -> None:
    base = only("FROM").words[0]
    assert only("FROM", BUILD).words == [base, "AS", "build"]
    stage, source, target = only("COPY").words
    assert (stage, source) == ("--from=build", target)
    assert environment()["PATH"].startswith(f"{target}/bin:")


def test_the_python_of_the_image_is_one_that_the_project_supports() -> None:
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    tag, digest = only("FROM").words[0].removeprefix("python:").split("-slim@")
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert [int(part) for part in tag.split(".")] >= [int(part) for part in lowest.split(".")]


def test_the_image_runs_as_a_user_without_rights_given_by_number() -> None:
    numbers = only("USER").text.split(":")
    assert all(int(number) >= 1000 for number in numbers)
    assert f"--uid {numbers[0]} " in only("RUN").text


def test_the_home_that_compose_mounts_is_the_users_own() -> None:
    home = environment()["ROWCALL_HOME"]
    user, group = only("USER").text.split(":")
    assert f"install -d -o {user} -g {group} -m 700 {home}" in only("RUN").text
    compose = (ROOT / "compose.yaml").read_text()
    assert f"- home:{home}\n" in compose


def test_the_api_listens_where_the_image_says_by_settings_that_rowcall_reads() -> None:
    ours = {name: value for name, value in environment().items() if name.startswith("ROWCALL_")}
    assert set(ours) <= {setting.variable for setting in settings.all_settings().values()}
    chosen = settings.read(ours)
    assert (chosen.api_host, str(chosen.api_port)) == ("0.0.0.0", only("EXPOSE").text)  # noqa: S104 - a container's


def test_only_a_lock_decides_what_is_downloaded() -> None:
    commands = re.split(r"&&", " && ".join(step.text for step in BUILD if step.keyword == "RUN"))
    installs = [command for command in commands if " install " in command]
    assert len(installs) == 3
    assert all("--require-hashes" in command or "--no-index" in command for command in installs)


PRIVATE = (".env", ".git/config", ".venv/bin/python", ".rowcall/api_key", "tests/making.py")


@pytest.mark.parametrize("path", [*PRIVATE, "api/rowcall_api/__pycache__/a.pyc"])
def test_secrets_and_local_data_never_reach_the_builder(path: str) -> None:
    assert not reaches_the_builder(PurePosixPath(path))


@pytest.mark.parametrize("source", [source for step in BUILD if step.keyword == "COPY" for source in step.words[:-1]])
def test_what_is_copied_reaches_the_builder(source: str) -> None:
    files = [file for file in (ROOT / source, *(ROOT / source).rglob("*.py")) if file.is_file()]
    assert files
    assert all(reaches_the_builder(PurePosixPath(file.relative_to(ROOT))) for file in files)


def test_every_package_of_the_wheel_is_copied() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
    copied = {source for step in BUILD if step.keyword == "COPY" for source in step.words[:-1]}
    assert {str(PurePosixPath(package).parent) for package in packages} <= copied
