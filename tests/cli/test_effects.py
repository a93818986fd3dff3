"""`rowcall effects`: show effects that are not settled, and resolve them."""

from __future__ import annotations

import json

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
        (["resolve", "sent_email", "1", "--happened"], 1, "did you mean 'sent_emails'?"),
        (
            ["list", "--kind", "sent_pigeons"],
            1,
            "no effects of kind 'sent_pigeons'; known kinds: sent_emails",
        ),
        (["list", "--kind", "sent_pigeons", "--run", "1"], 1, "no effects of kind 'sent_pigeons'"),
        (["resolve", "payments", "7", "--happened"], 1, "there is no effect 7 of payments"),
        (
            ["resolve", "sent_emails", "7", "8", "--happened", "--reference", "x"],
            2,
            "--reference belongs to one effect: specify one id",
        ),
        (["list", "--state", "lost"], 2, "'lost' is not one of"),
    ],
)
def test_what_cannot_be_done_says_why(
    environment: dict[str, str], arguments: list[str], code: int, complaint: str
) -> None:
    refused = rowcall(environment, "effects", *arguments)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert complaint in refused.stderr


@pytest.mark.parametrize("state", ["unknown", "intent"])
def test_a_retry_names_the_effect_that_must_be_resolved_first(
    environment: dict[str, str], fresh_url: str, state: str
) -> None:
    here = {**environment, "DATABASE_URL": fresh_url}
    with database.transaction(fresh_url) as connection:
        run, other = (run_in(connection, Status.DEAD)["id"] for _ in range(2))
        [effect] = database.fetch_all(
            connection,
            "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
            " VALUES ('welcome', %(run)s, 1, '', %(state)s) RETURNING id",
            {"run": run, "state": state},
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


@pytest.fixture
def here(environment: dict[str, str], fresh_url: str) -> dict[str, str]:
    return {**environment, "DATABASE_URL": fresh_url}


def unknown_effect(url: str, status: Status, **columns: str) -> tuple[int, int]:
    """Return the ids of an unknown email and of its run."""
    with database.transaction(url) as connection:
        run: int = run_in(connection, status, **columns)["id"]
        [effect] = database.fetch_all(
            connection,
            "INSERT INTO rowcall.sent_emails (idempotency_key, run_id, lease_no, content_hash, state)"
            " VALUES ('mail of ' || %(run)s::bigint, %(run)s, 1, '', 'unknown') RETURNING id",
            {"run": run},
        )
    return effect["id"], run


def test_several_effects_are_resolved_each_on_its_own(here: dict[str, str], fresh_url: str) -> None:
    effects, runs = zip(*(unknown_effect(fresh_url, Status.DEAD) for _ in range(2)), strict=True)
    first, second = effects
    done = rowcall(here, "effects", "resolve", "sent_emails", str(first), "999", str(second), "--did-not-happen")
    assert done.returncode == 1
    assert [line.split(" is recorded")[0] for line in done.stdout.splitlines()] == [
        f"effect {effect} of sent_emails" for effect in effects
    ]
    assert "there is no effect 999 of sent_emails" in done.stderr
    assert f"`rowcall runs retry {runs[0]} {runs[1]}` continues them" in done.stderr
    corrected = rowcall(here, "effects", "resolve", "sent_emails", *map(str, effects), "--happened", "--json")
    assert corrected.returncode == 0
    assert [json.loads(line)["state"] for line in corrected.stdout.splitlines()] == ["applied", "applied"]
    again = rowcall(here, "effects", "resolve", "sent_emails", *map(str, effects), "--happened")
    assert (again.returncode, again.stdout, again.stderr.count("nothing to resolve")) == (1, "", 2)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.QUEUED])
def test_only_a_run_that_can_be_retried_is_said_to_be_continued(
    here: dict[str, str], fresh_url: str, status: Status
) -> None:
    effect, _ = unknown_effect(fresh_url, status)
    done = rowcall(here, "effects", "resolve", "sent_emails", str(effect), "--did-not-happen")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("has no next attempt" in done.stdout) is (status is Status.SUCCEEDED)


def test_an_erased_run_is_named_with_its_open_effect_and_never_said_to_perform_it(
    here: dict[str, str], fresh_url: str
) -> None:
    effect, run = unknown_effect(fresh_url, Status.DEAD)
    erased = rowcall(here, "erase", str(run), "--yes")
    assert erased.returncode == 0
    assert f"effects of these runs may have happened: run {run}; `rowcall effects list --run {run}`" in erased.stderr
    done = rowcall(here, "effects", "resolve", "sent_emails", str(effect), "--did-not-happen")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"run {run} was erased or pruned and cannot be retried" in done.stdout
    assert "only a new run could perform it" in done.stdout
    corrected = rowcall(here, "effects", "resolve", "sent_emails", str(effect), "--happened").stdout
    assert corrected.endswith(f": run {run} was erased or pruned and cannot be retried\n")
