"""A file of definitions, in TOML or YAML: a table `definitions`, with one entry for each name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from shared.errors import DefinitionFileInvalid

EXAMPLE = """[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "17 3 * * *"
payload = { day = "{date-1}" }"""

FILE_BYTES = 1024 * 1024


def read_file(file: Path) -> dict[str, dict[str, Any]]:
    """Name -> content as it stands there, unchecked; DefinitionFileInvalid tells where the file cannot be read."""
    text = _text(file)
    if file.suffix == ".toml":
        held: object = _toml(file, text)
    elif file.suffix in {".yaml", ".yml"}:
        held = _yaml(file, text)
    else:
        raise DefinitionFileInvalid(f"{file}: the name must end in .toml, .yaml or .yml")
    if not isinstance(held, Mapping) or set(held) != {"definitions"} or not isinstance(held["definitions"], Mapping):
        raise DefinitionFileInvalid(
            f"{file}: must hold one table `definitions` and nothing beside it, such as\n{EXAMPLE}"
        )
    for name, content in held["definitions"].items():
        if not isinstance(name, str) or not isinstance(content, Mapping):
            raise DefinitionFileInvalid(f"{file}: definitions.{name} must be a table with fields such as job_type")
    return {name: dict(content) for name, content in held["definitions"].items()}


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise DefinitionFileInvalid(f"{file}: is larger than {FILE_BYTES} bytes, and holds no definitions then")
        return data.decode()
    except OSError as error:
        raise DefinitionFileInvalid(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DefinitionFileInvalid(f"{file}: is no UTF-8 text: {error.reason} at byte {error.start}") from None


def _toml(file: Path, text: str) -> object:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DefinitionFileInvalid(f"{file}: is no TOML: {error}") from None


def _yaml(file: Path, text: str) -> object:
    try:
        # Pure Python reads YAML 1.2, where `on` and `12:30` are words; equal names in one table are refused.
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        at = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        hint = "; a schedule that begins with * must stand in quotes" if "alias" in str(error) else ""
        raise DefinitionFileInvalid(f"{file}{at}: is no YAML: {error.problem or error.context}{hint}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise DefinitionFileInvalid(f"{file}: is no YAML: {' '.join(str(error).split())}") from None
