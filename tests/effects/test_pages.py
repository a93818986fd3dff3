"""docs/effects.md, gateways.md and keys.md: their blocks run as they stand, in one handler."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tests.support.page import Reader, blocks

MAIL, KINDS, SMS = blocks("effects.md", "python")
[GATEWAYS] = blocks("gateways.md", "python")
[CHARGE] = blocks("keys.md", "python")

JOB_TYPES = f"""
from marshmallow import Schema, fields
from rowcall import JobType
{KINDS}

class Invoice(Schema):
    invoice_id = fields.Integer(required=True)


{CHARGE}
"""

HANDLER = """
from types import SimpleNamespace

from shop.job_types import CHARGE, SMS

provider = SimpleNamespace(send=lambda number, text, request_id: request_id)
effect = SimpleNamespace(message_id="<7@example.com>", event_id="evt_7", idempotency_key="invoice:7")
user_id, number, text, url, content, png, pdf = 1, "+49", "Pay!", "https://example.com/hook", b"7", b"png", b"%PDF"


@CHARGE.handler
def charge(run):
    invoice_id = run.payload["invoice_id"]
"""

TEST = """
from shop.job_types import CHARGE

pytest_plugins = ["rowcall_worker.testing"]


def test_it(rowcall):
    done = rowcall.perform(rowcall.enqueue(CHARGE, {"invoice_id": 7}))
    assert done.status == "succeeded", done.error
    assert {(effect["kind"], effect["state"]) for effect in done.effects} == {
        ("sent_emails", "applied"), ("sms", "applied")
    }
    assert len(rowcall.gateways.mail.sent) == 2
    assert len(rowcall.gateways.webhook.delivered) == len(rowcall.gateways.payment.charged) == 1
    assert [file.path for file in rowcall.gateways.files.written] == ["exports/2026-10-01/orders.csv"]
"""


def test_the_blocks_run_in_a_handler(tmp_path: Path, fresh_url: str) -> None:
    mail = MAIL.replace("mail.send(..., ", 'mail.send(to="ada@example.com", subject="Hi", text="Hi", ')
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "job_types.py").write_text(JOB_TYPES)
    (shop / "handlers.py").write_text(HANDLER + textwrap.indent("\n".join((mail, SMS, GATEWAYS)), "    "))
    (tmp_path / "test_shop.py").write_text(TEST)
    reader = Reader(tmp_path, fresh_url, ROWCALL_APP="shop")
    assert "1 passed" in reader.type("pytest -p no:cacheprovider test_shop.py")


def test_the_command_makes_a_secret_that_the_setting_accepts(tmp_path: Path) -> None:
    [command] = blocks("gateways.md", "sh")
    secret = Reader(tmp_path).type(command).strip()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    reader = Reader(tmp_path, ROWCALL_WEBHOOK_SECRET=secret)
    assert reader.type("rowcall webhook-secret https://hooks.example/rowcall").startswith("whsec_")
