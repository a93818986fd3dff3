"""Effects on the page: found by what an operator knows, the unknown first, resolved with a reason, and corrected."""

from __future__ import annotations

import pytest

from rowcall import effects
from rowcall.base.database import PgConnection, fetch_all, fetch_one, fetch_value
from rowcall.status import Status
from tests.page.conftest import Browse
from tests.support.rows import run_in

MAIL = """
INSERT INTO rowcall.sent_emails
    (idempotency_key, run_id, lease_no, content_hash, state, recipient, provider_reference, applied_at, refusal)
VALUES (%(key)s, %(run_id)s, 1, '', %(state)s, %(recipient)s, %(reference)s,
    CASE WHEN %(state)s = 'applied' THEN now() END, CASE WHEN %(state)s = 'unknown' THEN 'its worker died' END)
RETURNING id
"""


def mail(
    connection: PgConnection,
    key: str,
    state: str = "unknown",
    status: Status = Status.DEAD,
    recipient: str = "ada@example.com",
    reference: str | None = None,
) -> int:
    run_id = run_in(connection, status)["id"]
    values = {"key": key, "run_id": run_id, "state": state, "recipient": recipient, "reference": reference}
    number: int = fetch_value(connection, MAIL, values)
    return number


def resolution(connection: PgConnection, effect_id: int) -> dict[str, object]:
    row = fetch_one(
        connection,
        "SELECT who, before, after FROM rowcall.audit_log WHERE subject = 'effect' AND subject_id = %(id)s"
        " ORDER BY id DESC LIMIT 1",
        {"id": effect_id},
    )
    assert row is not None
    return row


def test_without_effects_the_list_says_what_performs_one(browse: Browse, committed: PgConnection) -> None:
    fetch_all(committed, "TRUNCATE rowcall.sent_emails")
    shown = browse("read").get("/effects")
    assert "No run has performed an effect yet. A handler performs one with run.effect" in shown.text
    assert "Unknown outcome" not in shown.text
    assert "No effect matches. Show all" in browse("read").get("/effects", state="refused").text


def test_those_with_an_unknown_outcome_come_first_and_are_explained(browse: Browse, committed: PgConnection) -> None:
    mail(committed, "first:unknown")
    mail(committed, "first:applied", "applied", reference="ref-77")
    shown = browse("read").get("/effects").text
    assert shown.index("Nobody knows whether these happened") < shown.index("first:unknown") < shown.index("Newest")
    assert "ada@example.com, ref-77" in shown


@pytest.mark.parametrize("sought", ["was:she:mailed", "Grace@example.com", "PROVIDER-9"])
def test_an_effect_is_found_by_its_key_its_recipient_and_its_reference(
    browse: Browse, committed: PgConnection, sought: str
) -> None:
    key = f"was:she:mailed:{sought}" if sought != "was:she:mailed" else sought
    found = mail(committed, key, "applied", recipient="grace@example.com", reference="provider-9")
    shown = browse("read").send("/effects", "Find", find=sought)
    assert f"/admin/effects/sent_emails/{found}" in shown.links
    assert "Newest" not in shown.text


def test_a_search_without_a_match_says_what_was_compared(browse: Browse) -> None:
    shown = browse("read").get("/effects", find="nobody")
    assert "No effect has this key, recipient or reference." in shown.text
    assert "/admin/runs?key=nobody" in shown.links


def test_an_operator_records_an_outcome_with_its_reference_and_the_reason(
    browse: Browse, committed: PgConnection
) -> None:
    number = mail(committed, "resolve:happened")
    before = browse().get(f"/effects/sent_emails/{number}")
    assert "Its worker died" in before.text
    assert "Retry this run after you have recorded the outcome" in before.text
    after = browse().send(
        f"/effects/sent_emails/{number}",
        "Record the outcome",
        happened="yes",
        reference="<log-1>",
        reason="it is in the mail log",
    )
    assert "The outcome is recorded." in after.text
    assert "A retry of this run does not perform the effect again." in after.text
    assert effects.show_effect(committed, "sent_emails", number)["reference"] == "<log-1>"
    audited = resolution(committed, number)
    assert str(audited["who"]).startswith("api:test operator")
    assert audited["after"]["reason"] == "it is in the mail log"  # type: ignore[index]


def test_a_wrong_resolution_is_corrected(browse: Browse, committed: PgConnection) -> None:
    number = mail(committed, "resolve:corrected")
    path, operator = f"/effects/sent_emails/{number}", browse()
    operator.send(path, "Record the outcome", happened="yes")
    corrected = operator.send(path, "Record the outcome", happened="no", reason="that was another mail")
    assert "Retry this run to perform the effect." in corrected.text
    assert effects.show_effect(committed, "sent_emails", number)["state"] == "refused"
    again = operator.send(path, "Record the outcome", happened="yes", reference="ref-1")
    assert "It happened, and is not performed again." in again.text


def test_what_an_attempt_recorded_cannot_be_corrected(browse: Browse, committed: PgConnection) -> None:
    number = mail(committed, "resolve:settled", "applied")
    path = f"/effects/sent_emails/{number}"
    assert "Record the outcome" not in browse().get(path).forms
    refused = browse().post(f"{path}/resolve", happened="no")
    assert (refused.status, "there is nothing to resolve" in refused.text) == (409, True)


def test_an_effect_that_a_worker_performs_now_has_no_form(browse: Browse, committed: PgConnection) -> None:
    number = mail(committed, "resolve:running", "intent", Status.RUNNING)
    fetch_all(committed, "UPDATE rowcall.sent_emails SET lease_no = 3 WHERE id = %(id)s", {"id": number})
    assert "Record the outcome" not in browse().get(f"/effects/sent_emails/{number}").forms
    refused = browse().post(f"/effects/sent_emails/{number}/resolve", happened="no")
    assert (refused.status, "is performing effect" in refused.text) == (409, True)


@pytest.mark.parametrize(
    ("sent", "field", "why"),
    [
        ({}, "happened", "Say whether it happened"),
        ({"happened": "no", "reference": "ref-1"}, "reference", "Is only allowed if `happened` is true"),
        ({"happened": "yes", "reason": "x" * 501}, "reason", "Must be 1 to 500 printable characters"),
    ],
)
def test_what_is_wrong_with_a_resolution_is_said_at_its_field_and_what_was_typed_is_kept(
    browse: Browse, committed: PgConnection, sent: dict[str, str], field: str, why: str
) -> None:
    number = mail(committed, f"resolve:wrong:{field}")
    refused = browse().post(f"/effects/sent_emails/{number}/resolve", **sent)
    assert refused.status == 422
    assert why in refused.html.split(f'id="{field}-wrong">')[1]
    assert '<details class="act" open>' in refused.html
    assert all(f'value="{text}"' in refused.html for text in sent.values())
    assert effects.show_effect(committed, "sent_emails", number)["state"] == "unknown"


def test_a_run_that_was_pruned_cannot_perform_its_effect_again(browse: Browse, committed: PgConnection) -> None:
    number = mail(committed, "resolve:gone")
    pruned = "UPDATE rowcall.job_runs SET pruned_at = now() WHERE id = %(id)s"
    fetch_all(committed, pruned, {"id": effects.show_effect(committed, "sent_emails", number)["run_id"]})
    assert (
        "which was pruned or erased and cannot be retried" in browse("read").get(f"/effects/sent_emails/{number}").text
    )


def test_a_key_that_only_reads_sees_no_form_and_is_refused(browse: Browse, committed: PgConnection) -> None:
    number = mail(committed, "resolve:reader")
    reader = browse("read")
    assert "Record the outcome" not in reader.get(f"/effects/sent_emails/{number}").forms
    assert reader.post(f"/effects/sent_emails/{number}/resolve", happened="yes").status == 403
    assert effects.show_effect(committed, "sent_emails", number)["state"] == "unknown"


def test_an_unknown_effect_and_an_unknown_kind_are_not_found(browse: Browse) -> None:
    assert browse("read").get("/effects/sent_emails/999999").status == 404
    assert browse("read").get("/effects", kind="no_kind").status == 422
