"""The outside that gateways are tested against: see tests/support/servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.authority import Authority
from tests.support.servers.provider import Provider
from tests.support.servers.web import WebServer, serving


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority that nobody trusts yet."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The same authority, trusted as operators make theirs trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


@pytest.fixture
def sink() -> Iterator[WebServer]:
    """A receiver of webhooks."""
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A payment provider."""
    with serving(Provider()) as server:
        yield server
