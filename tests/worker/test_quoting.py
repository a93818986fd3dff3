"""Any value in a crontab, a unit or a manifest reaches the program unchanged."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ruamel.yaml import YAML

from rowcall_worker.install.forms import crontab, kubernetes, systemd
from rowcall_worker.install.installation import Installation
from tests.support.processes import LIMIT_SECONDS

VALUES = {
    f"ROWCALL_{number}": value
    for number, value in enumerate(
        [
            *("a b", " a ", "", "on", "007", "-n", "~", "a=b", "#", ";", "!", "é", "\U0001f600", "\t", "\xa0"),
            *("%", "%%", "100% 'so'", "%h", "\\%", "\\\\%", "%\\", "\\", "\\\\", "\\\\\\", "\\n", "a\\", "c:\\d e"),
            *("'", '"', "it's", 'say "x"', "'\"'", "`id`", "$HOME", "${HOME}", "$(HOME)", "$$", "a$", "$(id) & x|y>z<"),
            *("*", "?[a]", "{a,b}", "{0}", "a: b", "- a", "\u2028", "\ufeff"),
        ]
    )
}
BROKEN = {**VALUES, "ROWCALL_LINES": "one\ntwo\n"}

# A program that prints what it was given.
PROBE = 'import json, os, sys; json.dump([os.getcwd(), dict(os.environ), sys.argv[2:]], open(sys.argv[1], "w"))'


def installation(folder: Path, variables: dict[str, str]) -> Installation:
    """Return an installation with every value as a variable and as an argument, in odd folders."""
    return Installation(
        program=[sys.executable, "-c", PROBE, str(folder / "told.json")],
        arguments=list(variables.values()),
        settings=variables,
        places={},
        folder=str(folder),
        secrets=["DATABASE_URL"],
        environment_file=str(folder / "a[1]*.env"),
        user="nobody",
        version="1",
        image="a",
        grace=25,
        local_server=False,
    )


def unescaped(line: str, escaped: str) -> str:
    r"""Do what a cron does: remove the \ before these characters, and return all up to the first unescaped %."""
    return re.sub(r"\\(.)|%.*", lambda found: found[found[1] in escaped] if found[1] else "", line)


# Debian's and cronie's; FreeBSD's and other descendants of Vixie's; BusyBox's.
CRONS: dict[str, Callable[[str], str]] = {
    "a backslash before a percent sign is taken away": lambda line: unescaped(line, "%"),
    "the first of two backslashes is taken away too": lambda line: unescaped(line, "%\\"),
    "nothing is taken away": lambda line: line,
}


@pytest.mark.parametrize("cron", CRONS)
def test_a_crontab_gives_back_every_value_with_every_cron(
    tmp_path: Path, cron: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall_worker.install.forms.CRON_COMMAND_BYTES", 100_000)
    folder = tmp_path / "my 100% \\ app's"
    folder.mkdir()
    given = installation(folder, VALUES)
    Path(str(given.environment_file)).write_text("DATABASE_URL='from the file'\nROWCALL_1='changed'\n")
    line = crontab(given).split("\n")[-2].removeprefix("* * * * * ")
    subprocess.run(
        ["/usr/bin/env", "-i", "/bin/sh", "-c", CRONS[cron](line)], cwd="/", timeout=LIMIT_SECONDS, check=True
    )
    where, variables, arguments = json.loads((folder / "told.json").read_text())
    assert (where, arguments) == (str(folder), list(VALUES.values()))
    assert {name: variables[name] for name in VALUES} == {**VALUES, "ROWCALL_1": "changed"}
    assert variables["DATABASE_URL"] == "from the file"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that any user can read."""
    with TemporaryDirectory(prefix="rowcall-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.program("systemd-analyze")
@pytest.mark.parametrize("name", ["100%h", "it's", 'a "b"', "$HOME", "c:\\d"])
def test_systemd_gives_back_every_value(open_folder: Path, name: str) -> None:
    given = dataclasses.replace(installation(open_folder / name, BROKEN), program=[str(open_folder / name / "rowcall")])
    service = systemd(given).partition("# /etc/systemd/system/rowcall.timer")[0]
    (open_folder / "rowcall.service").write_text(service)
    read = as_systemd_reads_it(open_folder)
    assert f"WorkingDirectory: {given.folder}\n" in read
    # It is a pattern, so these characters need a backslash.
    escaped = f"{given.environment_file}".replace("\\", "\\\\").replace("[", "\\[").replace("*", "\\*")
    assert f"EnvironmentFile: {escaped}\n" in read
    assert [name for name, value in BROKEN.items() if f"Environment: {name}={value}\n" not in read] == []
    [line] = re.findall(r"Command Line: (.*)\n", read)
    words = started(line)
    if words[0] == "/bin/sh":
        probe = [*words[:2], words[2].replace("exec", "printf '%s\n'"), *words[3:]]
        assert subprocess.run(probe, capture_output=True, text=True, check=True).stdout == "\n".join([*words[3:], ""])
        words = words[3:]
    assert words == given.command


def as_systemd_reads_it(folder: Path) -> str:
    """Return how systemd reads the service in this folder; systemd starts nothing, and refuses to do this as root."""
    done = subprocess.run(
        ["/lib/systemd/systemd", "--test", "--system", "--unit=rowcall.service"],
        env={"SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_LOG_LEVEL": "err"},
        user="nobody" if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    return done.stdout.partition("-> Unit rowcall.service:\n")[2].partition("-> Unit ")[0]


def started(line: str) -> list[str]:
    """Return the words that systemd starts for this command line; it replaces $NAME in all but the first."""
    escapes = {"n": "\n", "t": "\t"}
    quoted = [(plain, inner) for inner, plain in re.findall(r'"((?:\\.|[^"\\])*)"|([^ "]+)', line)]
    words = [plain or re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), inner) for plain, inner in quoted]
    assert "$" not in "".join(words).replace("$$", "")
    return [words[0], *(word.replace("$$", "$") for word in words[1:])]


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_a_manifest_gives_back_every_value_to_every_reader_of_yaml(tmp_path: Path, version: tuple[int, int]) -> None:
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    read = reader.load(kubernetes(installation(tmp_path, BROKEN)))
    [container] = read["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert {variable["name"]: expanded(variable["value"]) for variable in container["env"]} == BROKEN
    assert [expanded(word) for word in container["args"]] == list(BROKEN.values())


def expanded(text: str) -> str:
    """Return args and values as Kubernetes expands them."""
    return re.sub(r"\$(\$|\(.*?\))", lambda found: "$" if found[1] == "$" else "another variable's value", text)
