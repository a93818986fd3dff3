"""The example's declarations: what their payloads take, and that each type has its handler."""

from __future__ import annotations

import pytest

from rowcall.base.errors import RunInvalid
from rowcall.job_types import load_catalogue
from rowcall.job_types.declaration import KEY_CHARACTERS
from rowcall_example.business.invoices import ReminderKind
from rowcall_worker.handlers import load_handlers


def test_an_event_id_may_be_so_long_that_its_key_still_fits_and_no_longer() -> None:
    kind, event = load_catalogue("rowcall_example")["deliver_webhook"], {"url": "https://example.com/", "body": {}}
    key = kind.natural_key(kind.checked({**event, "event_id": "x" * 247}))
    assert len(key or "") == KEY_CHARACTERS
    for event_id in ("x" * 248, "a.b", "evt_1\n", ""):
        with pytest.raises(RunInvalid, match="event_id: must be 1 to 247 of the .* with `webhook:` before it, it is"):
            kind.checked({**event, "event_id": event_id})


def test_the_kinds_of_reminder_that_can_be_asked_for_are_those_there_are() -> None:
    kind = load_catalogue("rowcall_example")["send_invoice_email"]
    for name in ReminderKind:
        assert kind.checked({"invoice_id": 1, "kind": name.value}) == {"invoice_id": 1, "kind": name.value}
    with pytest.raises(RunInvalid, match="kind: Must be one of: upcoming, due, overdue"):
        kind.checked({"invoice_id": 1, "kind": "final"})


def test_the_catalogue_and_the_handlers_are_the_same_set() -> None:
    catalogue = load_catalogue("rowcall_example")
    assert set(load_handlers(catalogue, "rowcall_example")) == set(catalogue)
