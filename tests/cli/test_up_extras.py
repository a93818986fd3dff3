"""What `rowcall up` says about extras that are not installed."""

from __future__ import annotations

import pytest

from rowcall.cli.up.command import without


@pytest.mark.parametrize(
    ("view", "example", "sentence"),
    [
        (True, True, "There is no live view and no example app: pip install 'rowcall[all]' adds them."),
        (True, False, "There is no live view: pip install 'rowcall[all]' adds it."),
        (False, True, "There is no example app: pip install 'rowcall[example]' adds it."),
        (False, False, None),
    ],
)
def test_what_an_extra_would_add_is_said_with_its_name(view: bool, example: bool, sentence: str | None) -> None:
    assert without(view, example) == sentence
