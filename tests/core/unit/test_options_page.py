"""docs/jobs.md lists every option of a job type with its default."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields

from rowcall.job_types import JobType
from rowcall.job_types.backoff import quadratic
from tests.support.processes import ROOT

# Options whose None means a setting.
SETTINGS = {"lease": "`ROWCALL_LEASE`"}


def default_of(option: Field[object]) -> str:
    """Return the default as the page writes it."""
    if option.default_factory is quadratic:
        return "`quadratic()`"
    if option.default is MISSING:
        return ""
    if option.default is None:
        return SETTINGS.get(option.name, "none")
    if isinstance(option.default, bool):
        return f"`{option.default}`"
    return f'`"{option.default}"`' if isinstance(option.default, str) else str(option.default)


def test_the_page_has_every_option_and_its_default() -> None:
    section = (ROOT / "docs" / "jobs.md").read_text().split("## The options of a job type")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| (.*?) ?\| .+ \|$", section, re.M)
    assert dict(listed) == {option.name: default_of(option) for option in fields(JobType) if option.name != "name"}
