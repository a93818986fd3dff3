"""Check the content of a definition named nightly."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.base.errors import DefinitionInvalid
from rowcall.definitions import Content, checked
from rowcall.job_types import Catalogue, load_catalogue

CATALOGUE = load_catalogue("rowcall_example")

# Python cannot print a number with this many digits.
HUGE = 10**5000


def content(**given: Any) -> Content:
    return checked("nightly", {"job_type": "noop", **given}, CATALOGUE)


def refusals(name: str = "nightly", catalogue: Catalogue = CATALOGUE, **given: Any) -> dict[str, object]:
    """Return the errors by field."""
    with pytest.raises(DefinitionInvalid) as refused:
        checked(name, {"job_type": "noop", **given}, catalogue)
    assert [sentence.partition(": ")[0] for sentence in refused.value.sentences] == [
        f"definition {name!r}, {field}" for field in refused.value.fields
    ]
    return refused.value.fields
