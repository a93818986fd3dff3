"""The external services for the tests of gateways: see tests/support/servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.authority import Authority
from tests.support.servers.provider import Provider
from tests.support.servers.web import WebServer, serving


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return a certificate authority that is not yet trusted."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Return the same authority, trusted in the way that operators configure theirs."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


@pytest.fixture
def sink() -> Iterator[WebServer]:
    """Yield a receiver of webhooks."""
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Yield a payment provider."""
    with serving(Provider()) as server:
        yield server
