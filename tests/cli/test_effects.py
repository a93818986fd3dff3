"""`rowcall effects`: show effects that are not settled, and resolve them."""

from __future__ import annotations

import pytest

from tests.support.processes import rowcall


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
