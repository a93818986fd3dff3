"""Apply files of definitions, and return what changed."""

from __future__ import annotations

from pathlib import Path

from rowcall.definitions import (
    Difference,
)

NIGHTLY = """
[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "17 3 * * *"
payload = { day = "{date-1}" }
"""

YEARLY_TOML = '[definitions.yearly]\njob_type = "noop"\nschedule = "@yearly"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "definitions.toml"
    file.write_text(text)
    return file


def kinds(done: dict[str, Difference] | list[Difference]) -> dict[str, str]:
    return {one.name: str(one.change) for one in (done.values() if isinstance(done, dict) else done)}
