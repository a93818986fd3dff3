"""Values that no command can use: what is wrong with them is said, and nothing is changed."""

from __future__ import annotations

import pytest

from tests.support.processes import rowcall


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["enqueue", "noop", '{"a":' + "[" * 60_000 + "]" * 60_000 + "}"], "the payload is nested too deeply\n"),
        (["enqueue", "noop", '{"a": ' + "1" * 5000 + "}"], "a number with too many digits: send it as text\n"),
        (["worker", "once", "--max-time", "nan"], "'--max-time': 'nan' is not a number of seconds\n"),
        (["worker", "run", "--grace", "NaN"], "'--grace': 'NaN' is not a number of seconds\n"),
        (["enqueue", "noop", "--run-at", "0001-01-01T00:00+14:00"], "is before the year 1 or after the year 9999"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_usage_error(
    environment: dict[str, str], arguments: list[str], complaint: str
) -> None:
    refused = rowcall(environment, *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert complaint in refused.stderr
    assert "Traceback" not in refused.stderr
