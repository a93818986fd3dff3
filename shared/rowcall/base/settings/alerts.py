"""The settings of alerts."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.base.endpoints import HttpUrl
from rowcall.base.parsing import number
from rowcall.base.receivers import Receiver, addresses, urls
from rowcall.base.settings.declare import setting
from rowcall.base.settings.gateways import GatewaySettings


def _page_url(text: str) -> HttpUrl:
    url = HttpUrl.parse(text.strip().rstrip("/"))
    if not url.target.endswith("/admin"):
        raise ValueError("a URL that ends with /admin, such as https://jobs.example.com/admin")
    return url


@dataclass(frozen=True)
class AlertSettings(GatewaySettings):
    """The receivers of alerts and pings; declared after the settings of gateways."""

    alert_emails: tuple[Receiver, ...] = setting(
        "ROWCALL_ALERT_EMAILS",
        addresses,
        (),
        "Email addresses that receive alerts, separated by spaces or commas. Set it for all workers.",
    )
    alert_webhooks: tuple[Receiver, ...] = setting(
        "ROWCALL_ALERT_WEBHOOKS",
        urls,
        (),
        "URLs that receive alerts as JSON, separated by spaces, such as an incoming webhook of Slack or Mattermost. Set"
        " it for all workers.",
        secret=True,
    )
    alert_due: float = setting(
        "ROWCALL_ALERT_DUE",
        number(float, 60, 604800),
        900.0,
        "How long a due run may wait before the alert `run_overdue` fires.",
        unit="seconds",
    )
    page_url: HttpUrl | None = setting(
        "ROWCALL_PAGE_URL",
        _page_url,
        None,
        "Address of the operator's page, such as `https://jobs.example.com/admin`, for links in alerts.",
    )
    ping_url: HttpUrl | None = setting(
        "ROWCALL_PING_URL",
        HttpUrl.parse,
        None,
        "URL of a dead man's switch, which workers call every minute as long as schedules are being evaluated and runs"
        " are finishing, such as `https://hc-ping.com/...`. Set it for all workers.",
        secret=True,
    )

    @property
    def alert_receivers(self) -> tuple[Receiver, ...]:
        """Everyone who receives alerts."""
        return (*self.alert_emails, *self.alert_webhooks)
