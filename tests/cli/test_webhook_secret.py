"""`rowcall webhook-secret`: the secret with which a webhook receiver verifies signatures."""

from __future__ import annotations

import base64
import os

from rowcall.base.endpoints import endpoint_secret
from tests.support.processes import rowcall

URL = "https://hooks.example/rowcall"
NEW, OLD = bytes(range(24)), bytes(range(32))


def word(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def test_it_prints_the_endpoints_secret_for_each_one_that_is_set_the_new_one_first() -> None:
    done = rowcall({**os.environ, "ROWCALL_WEBHOOK_SECRET": f"{word(NEW)} {word(OLD)}"}, "webhook-secret", URL)
    assert done.stdout.split() == [word(endpoint_secret(secret, URL)) for secret in (NEW, OLD)]


def test_without_a_secret_or_a_url_it_says_what_to_set() -> None:
    unset = rowcall({**os.environ}, "webhook-secret", URL)
    assert (unset.returncode, unset.stderr) == (1, "rowcall: webhooks cannot be signed: set ROWCALL_WEBHOOK_SECRET\n")
    wrong = rowcall({**os.environ, "ROWCALL_WEBHOOK_SECRET": word(NEW)}, "webhook-secret", "hooks.example")
    assert wrong.returncode == 2
    assert "'hooks.example' must be a URL" in wrong.stderr
