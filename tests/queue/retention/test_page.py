"""docs/housekeeping.md: the retention times and settings that it states are true."""

from __future__ import annotations

import re
from pathlib import Path

from rowcall.definitions.check import checked
from rowcall.definitions.file import read_file
from rowcall.job_types import load_catalogue
from rowcall.schema.tables import job_attempts, job_runs
from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "housekeeping.md").read_text()


def test_its_example_is_a_file_of_definitions_with_another_policy_for_each(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "definitions.toml"
    file.write_text(example)
    types = load_catalogue(None)
    contents = {name: checked(name, raw, types) for name, raw in read_file(file).items()}
    assert set(contents) == {content.job_type for content in contents.values()} == set(types.definitions)
    for name, content in contents.items():
        assert types[name].checked(content.payload) != types[name].checked({})
        default = checked(name, types.definitions[name].content, types)
        assert (content.schedule, content.jitter) == (default.schedule, default.jitter)  # only the policy changes


def test_its_days_are_those_of_an_empty_policy() -> None:
    types = load_catalogue(None)
    policy = types["prune_runs"].checked({})
    for name, days in policy["keep_days"].items():
        assert f"| {days:g} days | `prune_runs`: `keep_days.{name}` |" in PAGE
    assert f"| {policy['keep_occurrences_days']:g} days from" in PAGE
    assert f"| {types['expire_keys'].checked({})['keep_days']:g} days | `expire_keys`: `keep_days` |" in PAGE


def test_its_settings_of_the_tables_are_those_of_the_schema() -> None:
    for table in (job_runs, job_attempts):
        for name, value in table.info["storage"].items():
            assert f"{name} = {value}" in PAGE
