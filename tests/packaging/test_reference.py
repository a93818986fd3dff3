"""docs/reference/: each page is what `make docs` writes from the code now."""

from __future__ import annotations

import pytest

from tests.reference.markdown import FOLDER
from tests.reference.pages import pages


@pytest.fixture(scope="module")
def generated(module_url: str) -> dict[str, str]:
    return pages(module_url)


def test_every_page_is_up_to_date(generated: dict[str, str]) -> None:
    stored = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert stored.keys() == generated.keys()
    for name, text in generated.items():
        assert stored[name] == text, f"docs/reference/{name} is not what the code says now: run `make docs`"


def test_no_operation_or_field_of_the_api_is_without_a_sentence(generated: dict[str, str]) -> None:
    rows = [line for line in generated["http.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []
