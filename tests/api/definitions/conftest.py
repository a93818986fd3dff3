"""A definition of each test's own, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Call, told

NIGHTLY = {
    "job_type": "cleanup_nightly",
    "payload": {"day": "{date-1}"},
    "schedule": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "max_lateness": "6h",
}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of this test's own: they share the database."""
    return "".join(sign if sign.isalnum() else "-" for sign in request.node.name.lower())[-90:].strip("-")


@pytest.fixture
def path(name: str) -> str:
    """Where the definition of this name is."""
    return f"/v1/definitions/{name}"


@pytest.fixture
def nightly(call: Call, path: str) -> dict[str, Any]:
    """The definition of this name, just made."""
    return told(call("PUT", path, json=NIGHTLY))


def rows(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told(answer)["items"]
    assert answer.status_code == 200
    return found
