"""Reads a file of definitions, in TOML or YAML: a table `definitions` with an entry for each name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError

from rowcall.base.errors import DefinitionFileInvalid

IN_TOML = """[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "17 3 * * *"
payload = { day = "{date-1}" }"""

IN_YAML = """definitions:
  nightly:
    job_type: cleanup_nightly
    schedule: "17 3 * * *"
    payload: {day: "{date-1}"}"""

FILE_BYTES = 1024 * 1024


def read_file(file: Path) -> dict[str, dict[str, Any]]:
    """Return the unchecked contents by name; raise DefinitionFileInvalid if the file cannot be read."""
    text = _text(file)
    if file.suffix.lower() == ".toml":
        return _named(file, _toml(file, text), IN_TOML)
    if file.suffix.lower() in {".yaml", ".yml"}:
        return _named(file, _yaml(file, text), IN_YAML)
    raise DefinitionFileInvalid(f"{file}: the name must end in .toml, .yaml or .yml")


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise DefinitionFileInvalid(f"{file}: is larger than {FILE_BYTES} bytes: split it")
        # Some editors begin a file with a byte order mark.
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DefinitionFileInvalid(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DefinitionFileInvalid(f"{file}: is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _named(file: Path, document: object, example: str) -> dict[str, dict[str, Any]]:
    """Return the contents by name; refuse a file that contains anything else."""
    if not isinstance(document, Mapping) or not isinstance(document.get("definitions"), Mapping) or len(document) > 1:
        others = [str(name) for name in document if name != "definitions"] if isinstance(document, Mapping) else []
        beside = f"; it also contains {', '.join(others)[:200]}" if others else ""
        raise DefinitionFileInvalid(
            f"{file}: must contain one table `definitions` and nothing else{beside}. For example:\n{example}"
        )
    for name, content in document["definitions"].items():
        if not isinstance(name, str) or not isinstance(content, Mapping):
            raise DefinitionFileInvalid(
                f"{file}: definitions.{name} is not a name with a table of fields. For example:\n{example}"
            )
    return {name: dict(content) for name, content in document["definitions"].items()}


def _toml(file: Path, text: str) -> object:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DefinitionFileInvalid(f"{file}: is not TOML: it nests too deeply") from None
    except ValueError as error:
        raise DefinitionFileInvalid(f"{file}: is not TOML: {error}") from None


class PlainComposer(Composer):
    """Refuses tags and aliases: a few lines of aliases can expand to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Check each value; ruamel.yaml calls this."""
        event = self.parser.peek_event()
        if event.anchor is not None:
            sign = "anchors (&) and aliases (*)"
        elif getattr(event, "tag", None) is not None:
            sign = "tags (!)"
        else:
            return super().compose_node(parent, index)
        raise ComposerError(problem=f"{sign} are not supported: write the value itself", problem_mark=event.start_mark)


def _yaml(file: Path, text: str) -> object:
    # The pure Python parser reads YAML 1.2, where `on` and `12:30` are strings, and refuses duplicate keys.
    reader = YAML(typ="safe", pure=True)
    reader.Composer = PlainComposer
    try:
        return reader.load(text)
    except MarkedYAMLError as error:
        at = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DefinitionFileInvalid(f"{file}{at}: is not YAML: {_problem(error)}") from None
    except RecursionError:
        raise DefinitionFileInvalid(f"{file}: is not YAML: it nests too deeply") from None
    except Exception as error:
        # The library also fails on values such as a date that does not exist.
        raise DefinitionFileInvalid(f"{file}: is not YAML: {' '.join(str(error).split())}") from None


def _problem(error: MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if "alias" in f"{error.context} {problem}" or "'@'" in problem:
        return f"{problem}; a schedule that begins with * or @ must be quoted"
    return problem
