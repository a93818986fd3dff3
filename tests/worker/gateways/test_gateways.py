"""The gateways of a worker: created from settings at their first use."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.base import settings
from rowcall.base.errors import NotConfigured
from rowcall_worker.gateways import Gateways
from rowcall_worker.gateways.mail import MailFolder
from rowcall_worker.gateways.payment import StripeLikeProvider
from rowcall_worker.gateways.smtp import SmtpMail

SECRET = "whsec_" + "c2VjcmV0" * 4


def gateways(**environment: str) -> Gateways:
    """Return the gateways of this environment."""
    return Gateways(settings.read(environment))


def test_without_a_setting_mails_and_files_lie_in_the_home_folder(tmp_path: Path) -> None:
    ours = gateways(ROWCALL_HOME=str(tmp_path))
    assert isinstance(ours.mail, MailFolder)
    name = ours.mail.send(to="ada@example.com", subject="Hi", text="Hi", message_id="<a@example.com>")
    assert b"From: Rowcall\r\n <rowcall@localhost>\r\n" in (tmp_path / "mail" / name).read_bytes()
    ours.files.write("a.csv", b"x")
    assert (tmp_path / "files" / "a.csv").read_bytes() == b"x"
    elsewhere = gateways(ROWCALL_HOME=str(tmp_path), ROWCALL_FILES=str(tmp_path / "other"))
    elsewhere.files.write("a.csv", b"y")
    assert (tmp_path / "other" / "a.csv").read_bytes() == b"y"


def test_a_gateway_that_is_not_set_names_its_settings_when_it_is_used() -> None:
    ours = gateways()
    with pytest.raises(NotConfigured, match="set ROWCALL_WEBHOOK_SECRET") as error:
        _ = ours.webhook
    assert (error.value.permanent, error.value.acted) == (True, "no")
    with pytest.raises(NotConfigured, match="set ROWCALL_PAYMENT_URL and ROWCALL_PAYMENT_KEY"):
        _ = ours.payment


def test_a_gateway_is_made_once() -> None:
    ours = gateways(
        ROWCALL_SMTP_URL="smtps://mail.example.com",
        ROWCALL_MAIL_FROM="Reports <reports@example.com>",
        ROWCALL_WEBHOOK_SECRET=SECRET,
        ROWCALL_PAYMENT_URL="https://api.stripe.com",
        ROWCALL_PAYMENT_KEY="sk_test_1",
    )
    assert isinstance(ours.mail, SmtpMail)
    assert isinstance(ours.payment, StripeLikeProvider)
    for name in ("mail", "webhook", "payment", "files"):
        assert getattr(ours, name) is getattr(ours, name)
