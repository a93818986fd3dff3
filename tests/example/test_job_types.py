"""The example's job types: which payloads they accept and refuse."""

from __future__ import annotations

import pytest

from rowcall.base.errors import RunInvalid
from rowcall.job_types import load_catalogue
from rowcall.job_types.declaration import KEY_CHARACTERS
from rowcall_example.queries.invoices import ReminderKind
from rowcall_worker.handlers import load_handlers

TYPES = load_catalogue("rowcall_example")


def test_an_event_id_may_be_so_long_that_its_key_still_fits_and_no_longer() -> None:
    webhook, event = TYPES["deliver_webhook"], {"url": "https://example.com/", "body": {}}
    key = webhook.natural_key(webhook.checked({**event, "event_id": "x" * 247}))
    assert len(key or "") == KEY_CHARACTERS
    for event_id in ("x" * 248, "a.b", "evt_1\n", ""):
        with pytest.raises(
            RunInvalid, match="event_id: must be 1 to 247 of the .*; the run's key is `webhook:` and this"
        ):
            webhook.checked({**event, "event_id": event_id})


def test_the_kinds_of_reminder_that_can_be_asked_for_are_those_there_are() -> None:
    mail = TYPES["send_invoice_email"]
    for name in ReminderKind:
        assert mail.checked({"invoice_id": 1, "kind": name.value}) == {"invoice_id": 1, "kind": name.value}
    with pytest.raises(RunInvalid, match="kind: Must be one of: upcoming, due, overdue"):
        mail.checked({"invoice_id": 1, "kind": "final"})


def test_the_catalogue_and_the_handlers_are_the_same_set() -> None:
    assert set(load_handlers(TYPES, "rowcall_example")) == set(TYPES)
