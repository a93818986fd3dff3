"""The content of a definition named nightly, accepted or refused."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.errors import DefinitionInvalid
from rowcall.definitions import Content, checked
from rowcall.job_types import Catalogue, load_catalogue

CATALOGUE = load_catalogue("rowcall_example")

# Python writes out no number of so many digits.
HUGE = 10**5000


def content(**given: Any) -> Content:
    return checked("nightly", {"job_type": "noop", **given}, CATALOGUE)


def refusals(name: str = "nightly", catalogue: Catalogue = CATALOGUE, **given: Any) -> dict[str, object]:
    """Field -> what is said of it."""
    with pytest.raises(DefinitionInvalid) as refused:
        checked(name, {"job_type": "noop", **given}, catalogue)
    assert [sentence.partition(": ")[0] for sentence in refused.value.sentences] == [
        f"definition {name!r}, {field}" for field in refused.value.fields
    ]
    return refused.value.fields
