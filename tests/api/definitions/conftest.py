"""A definition for each test, over HTTP."""

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
    """Return a name for this test, because the tests share a database."""
    return "".join(sign if sign.isalnum() else "-" for sign in request.node.name.lower())[-90:].strip("-")


@pytest.fixture
def path(name: str) -> str:
    """Return the path of this test's definition."""
    return f"/v1/definitions/{name}"


@pytest.fixture
def nightly(call: Call, path: str) -> dict[str, Any]:
    """Create this test's definition."""
    return told(call("PUT", path, json=NIGHTLY))


def rows(answer: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told(answer)["items"]
    assert answer.status_code == 200
    return found
