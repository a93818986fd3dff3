"""A shop whose workers tell a real mail server and a real receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.mail import MailServer, mail_server
from tests.support.servers.web import WebServer, serving
from tests.support.shop import Shop


@pytest.fixture
def chat() -> Iterator[WebServer]:
    """Yield the receiver of webhooks."""
    with serving(WebServer()) as server:
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    """Yield the mail server."""
    with mail_server() as server:
        yield server


@pytest.fixture
def telling(environment: dict[str, str], fresh_url: str, chat: WebServer, mail: MailServer) -> Shop:
    """Return a shop with both receivers."""
    shop = Shop(environment, fresh_url)
    shop.environment |= {
        "ROWCALL_SMTP_URL": f"smtp://127.0.0.1:{mail.port}?starttls=never",
        "ROWCALL_MAIL_FROM": "Rowcall <jobs@example.com>",
        "ROWCALL_ALERT_EMAILS": "ops@example.com",
        "ROWCALL_ALERT_WEBHOOKS": f"{chat.url}/hooks/a1b2c3d4e5",
        "ROWCALL_ENVIRONMENT": "production",
    }
    return shop
