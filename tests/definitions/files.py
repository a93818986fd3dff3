"""Files of definitions, and the errors for wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.base.errors import DefinitionFileInvalid
from rowcall.definitions.file import read_file
from rowcall.job_types import load_catalogue

CATALOGUE = load_catalogue("rowcall_example")

TOML = """
[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "*/5 3 * * *"
time_zone = "Europe/Berlin"
payload = { day = "{date-1}" }
max_lateness = "6h"
priority = -1

[definitions."by.hand"]
job_type = "noop"
payload = { on = true, at = "12:30", half = 0.5, list = [1, { deep = "x" }] }
jitter = 90
"""

YAML = """
# The same.
definitions:
  nightly:
    job_type: cleanup_nightly
    schedule: "*/5 3 * * *"
    time_zone: Europe/Berlin
    payload: {day: "{date-1}"}
    max_lateness: 6h
    priority: -1
  by.hand:
    job_type: noop
    payload:
      on: true
      at: 12:30
      half: 0.5
      list:
        - 1
        - deep: x
    jitter: 90
"""


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refusal(file: Path) -> str:
    """Return the error for a file that cannot be read, without its name."""
    with pytest.raises(DefinitionFileInvalid) as refused:
        read_file(file)
    sentence = str(refused.value)
    assert sentence.startswith(str(file))
    return sentence.removeprefix(str(file))
