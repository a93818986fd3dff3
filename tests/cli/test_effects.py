"""`rowcall effects`: show effects that are not settled, and resolve them."""

from __future__ import annotations

import pytest

from rowcall.base import database
from rowcall.status import Status
from tests.support.processes import rowcall
from tests.support.rows import run_in


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["resolve", "sent_emails", "1"], 2, "use either --happened or --did-not-happen"),
        (
            ["resolve", "sent_emails", "1", "--happened", "--did-not-happen"],
            2,
            "use either --happened or --did-not-happen",
        ),
        (
            ["resolve", "sent_emails", "1", "--did-not-happen", "--reference", "x"],
            2,
            "--reference needs --happened",
        ),
        (["resolve", "sent_pigeons", "1", "--happened"], 1, "there is no effect 1 of sent_pigeons"),
        (
            ["list", "--kind", "sent_pigeons"],
            1,
            "no effects of kind 'sent_pigeons'; known kinds: sent_emails",
        ),
        (["list", "--kind", "sent_pigeons", "--run", "1"], 1, "no effects of kind 'sent_pigeons'"),
        (["resolve", "payments", "7", "--happened"], 1, "there is no effect 7 of payments"),
        (["list", "--state", "lost"], 2, "'lost' is not one of"),
    ],
)
def test_what_cannot_be_done_says_why(
    environment: dict[str, str], arguments: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, "effects", *arguments)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert complaint in refused.stderr


def test_a_retry_names_the_effect_that_must_be_resolved_first(environment: dict[str, str], fresh_url: str) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    with database.transaction(fresh_url) as connection:
        run, other = (run_in(connection, Status.DEAD)["id"] for _ in range(2))
        [effect] = database.fetch_all(
            connection,
            "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
            " VALUES ('welcome', %(run)s, 1, '', 'unknown') RETURNING id",
            {"run": run},
        )
    retried = rowcall(here, "runs", "retry", str(run), str(other))
    assert (retried.returncode, retried.stdout) == (0, f"run {run} is queued\nrun {other} is queued\n")
    command = f"rowcall effects resolve sent_emails {effect['id']} --happened"
    assert retried.stderr.startswith(f"rowcall: it is unknown whether effect {effect['id']} of sent_emails happened")
    assert f"`{command}`" in retried.stderr
    assert retried.stderr.count("\n") == 1
    resolved = rowcall(here, *command.split()[1:])
    assert resolved.returncode == 0
    assert resolved.stdout == (
        f"effect {effect['id']} of sent_emails is recorded as happened:"
        f" the next attempt of run {run} does not perform it again\n"
    )
    assert rowcall(here, "runs", "cancel", str(run)).returncode == 0
    assert rowcall(here, "runs", "retry", str(run)).stderr == ""
