"""A file of definitions, in TOML or YAML: a table `definitions`, with one entry for each name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    """Name -> unchecked content; DefinitionFileInvalid says where the file cannot be read."""
    text = _text(file)
    if file.suffix.lower() == ".toml":
        return _named(file, _toml(file, text), IN_TOML)
    if file.suffix.lower() in {".yaml", ".yml"}:
        # Loaded here, because a worker that cron wakes each minute reads no file.
        from rowcall.definitions.plain_yaml import load

        return _named(file, load(file, text), IN_YAML)
    raise DefinitionFileInvalid(f"{file}: the name must end in .toml, .yaml or .yml")


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise DefinitionFileInvalid(f"{file}: is larger than {FILE_BYTES} bytes: split it")
        # Some editors begin a file with a mark of its encoding.
        return data.decode("utf-8-sig")
    except OSError as error:
        raise DefinitionFileInvalid(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DefinitionFileInvalid(f"{file}: is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _named(file: Path, document: object, example: str) -> dict[str, dict[str, Any]]:
    """Name -> content, if the file holds nothing else."""
    if not isinstance(document, Mapping) or not isinstance(document.get("definitions"), Mapping) or len(document) > 1:
        others = [str(name) for name in document if name != "definitions"] if isinstance(document, Mapping) else []
        beside = f"; it also holds {', '.join(others)[:200]}" if others else ""
        raise DefinitionFileInvalid(
            f"{file}: must hold one table `definitions` and nothing else{beside}. For example:\n{example}"
        )
    for name, content in document["definitions"].items():
        if not isinstance(name, str) or not isinstance(content, Mapping):
            raise DefinitionFileInvalid(
                f"{file}: definitions.{name} must be a name with a table of fields. For example:\n{example}"
            )
    return {name: dict(content) for name, content in document["definitions"].items()}


def _toml(file: Path, text: str) -> object:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DefinitionFileInvalid(f"{file}: is not TOML: it nests too deeply") from None
    except ValueError as error:
        raise DefinitionFileInvalid(f"{file}: is not TOML: {error}") from None
