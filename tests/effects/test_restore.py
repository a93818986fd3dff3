"""After a restore: what the ledger cannot know is not repeated, and everything that is safe goes on."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from rowcall import effects
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import Unavailable
from rowcall.effects import Decision
from rowcall.effects.erase import erase_details
from rowcall.effects.restore import lost, restored
from rowcall.queue import Lease
from rowcall.queue.workers import Registration, register
from rowcall.status import Status
from tests.effects.attempts import HOUR, MAIL, NUDGE, PAYMENT, REFUND, SMS, WEBHOOK, begun, next_attempt, stored
from tests.support.processes import rowcall
from tests.support.rows import WORKER, run_in

OPERATOR = Operator("cli:ada")
HARMFUL = pytest.mark.parametrize("kind", [MAIL, SMS], ids=lambda kind: kind.name)


def lease_of(connection: PgConnection, **columns: Any) -> Lease:
    """Return the lease of a run that was created two minutes ago, unless the columns say otherwise."""
    run = run_in(connection, Status.RUNNING, **{"created_at": "now() - interval '2 minutes'", **columns})
    return Lease(WORKER, run["id"], run["lease_no"])


def ago(connection: PgConnection, table: str, column: str, interval: str) -> None:
    fetch_all(connection, f"UPDATE rowcall.{table} SET {column} = {column} - interval '{interval}'")


@HARMFUL
def test_a_run_of_the_backup_repeats_nothing_until_an_operator_has_looked(
    connection: PgConnection, kind: effects.Kind
) -> None:
    lease = lease_of(connection)
    restored(connection, OPERATOR)
    decision, effect = begun(connection, lease, kind)
    assert (decision, effect.state, stored(connection, kind)["refusal"]) == (
        Decision.AMBIGUOUS,
        "unknown",
        lost(kind),
    )
    assert begun(connection, lease, kind, unperformed=True)[0] is Decision.AMBIGUOUS
    effects.resolve(connection, kind.name, effect.id, False, OPERATOR)
    fetch_all(connection, f"UPDATE rowcall.{kind.table.name} SET updated_at = now() + interval '1 second'")
    assert begun(connection, next_attempt(connection, lease), kind)[0] is Decision.PERFORM


@HARMFUL
def test_a_run_that_was_created_after_the_restore_goes_on(connection: PgConnection, kind: effects.Kind) -> None:
    restored(connection, OPERATOR)
    assert begun(connection, lease_of(connection, created_at="now()"), kind)[0] is Decision.PERFORM


@HARMFUL
def test_an_occurrence_of_the_lost_hours_is_not_trusted_though_its_run_is_new(
    connection: PgConnection, kind: effects.Kind
) -> None:
    restored(connection, OPERATOR)
    lease = lease_of(connection, created_at="now()", scheduled_for="now() - interval '1 hour'")
    assert begun(connection, lease, kind)[0] is Decision.AMBIGUOUS


@HARMFUL
def test_without_a_restore_nothing_changes(connection: PgConnection, kind: effects.Kind) -> None:
    assert begun(connection, lease_of(connection), kind)[0] is Decision.PERFORM


@HARMFUL
def test_what_the_backup_knows_as_refused_may_have_happened_since(connection: PgConnection, kind: effects.Kind) -> None:
    lease = lease_of(connection)
    begun(connection, lease, kind)
    lease = next_attempt(connection, lease)
    effect = begun(connection, lease, kind)[1]
    effects.resolve(connection, kind.name, effect.id, False, OPERATOR)
    ago(connection, kind.table.name, "updated_at", "1 minute")
    restored(connection, OPERATOR)
    decision, found = begun(connection, lease, kind)
    assert (decision, found.id, stored(connection, kind)["state"]) == (Decision.AMBIGUOUS, effect.id, "unknown")


def test_what_the_backup_knows_as_done_stays_done(connection: PgConnection) -> None:
    lease = lease_of(connection)
    effects.applied(connection, lease, begun(connection, lease)[1], "ref", {})
    restored(connection, OPERATOR)
    assert begun(connection, next_attempt(connection, lease))[0] is Decision.DONE


@pytest.mark.parametrize("kind", [WEBHOOK, NUDGE], ids=lambda kind: kind.name)
def test_what_the_receiver_recognizes_is_repeated(connection: PgConnection, kind: effects.Kind) -> None:
    lease = lease_of(connection)
    restored(connection, OPERATOR)
    assert begun(connection, lease, kind)[0] is Decision.PERFORM


@pytest.mark.parametrize("kind", [PAYMENT, REFUND], ids=lambda kind: kind.name)
@pytest.mark.parametrize(("age", "decision"), [("59 minutes", Decision.PERFORM), ("61 minutes", Decision.AMBIGUOUS)])
def test_a_charge_is_repeated_only_while_the_provider_remembers_its_key(
    connection: PgConnection, kind: effects.Kind, age: str, decision: Decision
) -> None:
    lease = lease_of(connection, created_at=f"now() - interval '{age}'")
    restored(connection, OPERATOR)
    assert begun(connection, lease, kind, horizon=HOUR)[0] is decision


def descendant(connection: PgConnection, lease: Lease, generations: int, note: str = "") -> Lease:
    """Return the lease of a run that was enqueued now by the handler of a run, so many times over."""
    for _ in range(generations):
        lease = lease_of(connection, created_at="now()", created_by=f"'run {lease.run_id}{note}'")
    return lease


@HARMFUL
@pytest.mark.parametrize("note", ["", " (sales@example.com)"])
@pytest.mark.parametrize("generations", [1, 3])
def test_a_run_that_a_run_of_the_backup_enqueues_again_repeats_nothing(
    connection: PgConnection, kind: effects.Kind, note: str, generations: int
) -> None:
    child = descendant(connection, lease_of(connection), generations, note)
    restored(connection, OPERATOR)
    assert begun(connection, child, kind)[0] is Decision.AMBIGUOUS


def test_a_chain_of_runs_that_never_ends_is_not_doubtful_forever(connection: PgConnection) -> None:
    restored(connection, OPERATOR)
    assert begun(connection, descendant(connection, lease_of(connection), 4))[0] is Decision.PERFORM


@pytest.mark.parametrize("who", ["run 1x", "runs 1", "run", "run 99999999999999999999", "cli:run 1"])
def test_only_the_id_of_a_run_makes_a_child(connection: PgConnection, who: str) -> None:
    lease_of(connection)
    restored(connection, OPERATOR)
    lease = lease_of(connection, created_at="now()", created_by=f"'{who}'")
    assert begun(connection, lease)[0] is Decision.PERFORM


@pytest.mark.parametrize(("age", "decision"), [("59 minutes", Decision.PERFORM), ("61 minutes", Decision.AMBIGUOUS)])
def test_a_charge_by_a_child_is_as_old_as_the_run_of_the_backup(
    connection: PgConnection, age: str, decision: Decision
) -> None:
    child = descendant(connection, lease_of(connection, created_at=f"now() - interval '{age}'"), 1)
    restored(connection, OPERATOR)
    assert begun(connection, child, PAYMENT, horizon=HOUR)[0] is decision


def details_of(connection: PgConnection) -> dict[str, Any]:
    [listed] = effects.list_effects(connection, "sent_emails")
    details: dict[str, Any] = listed["details"]
    return details


SEARCH_BY = "look in the mail log for its recipient, its subject and the time"


@pytest.mark.parametrize("refused", [False, True], ids=["not in the backup", "refused in the backup"])
def test_a_message_id_that_was_never_sent_is_not_shown(connection: PgConnection, refused: bool) -> None:
    lease = lease_of(connection, created_at="now()")
    if refused:
        _, effect = begun(connection, lease)
        effects.failed(connection, lease, effect, Unavailable("closed"), False)
        ago(connection, "sent_emails", "updated_at", "1 minute")
    ago(connection, "job_runs", "created_at", "2 minutes")
    restored(connection, OPERATOR)
    lease = next_attempt(connection, lease)
    decision, effect = begun(connection, lease)
    assert (decision, SEARCH_BY in str(effect.refusal)) == (Decision.AMBIGUOUS, True)
    assert "message_id" not in details_of(connection)
    erase_details(connection, [lease.run_id])
    assert "message_id" not in details_of(connection)
    effects.resolve(connection, "sent_emails", effect.id, True, OPERATOR)
    assert "message_id" not in details_of(connection)


@pytest.mark.parametrize("is_unknown", [False, True], ids=["intent in the backup", "unknown in the backup"])
def test_an_email_that_the_backup_knows_as_begun_may_have_been_sent_again_since(
    connection: PgConnection, is_unknown: bool
) -> None:
    """Its Message-ID is shown, because it may be the true one, and the reason says that it may be another."""
    lease = lease_of(connection)
    sent = begun(connection, lease)[1].message_id
    lease = next_attempt(connection, lease)
    if is_unknown:
        assert begun(connection, lease)[1].refusal is None
    ago(connection, "sent_emails", "updated_at", "1 minute")
    for _ in range(2):
        restored(connection, OPERATOR)
    decision, effect = begun(connection, next_attempt(connection, lease))
    assert (decision, details_of(connection)["message_id"]) == (Decision.AMBIGUOUS, sent)
    assert str(effect.refusal).count("perhaps with another Message-ID") == 1
    assert str(effect.refusal).endswith(
        "if the mail log does not have this one, look for its recipient, its subject and the time"
    )


def test_without_a_restore_an_unknown_email_is_sought_by_its_message_id(connection: PgConnection) -> None:
    lease = lease_of(connection)
    sent = begun(connection, lease)[1].message_id
    effect = begun(connection, next_attempt(connection, lease))[1]
    assert (effect.state, effect.refusal, details_of(connection)["message_id"]) == ("unknown", None, sent)


@pytest.mark.parametrize("happened", [True, False])
def test_a_resolved_email_keeps_the_message_id_by_which_it_was_judged(connection: PgConnection, happened: bool) -> None:
    lease = lease_of(connection)
    sent = begun(connection, lease)[1].message_id
    lease = next_attempt(connection, lease)
    effect = begun(connection, lease)[1]
    effects.resolve(connection, "sent_emails", effect.id, happened, OPERATOR)
    assert details_of(connection)["message_id"] == sent
    effects.resolve(connection, "sent_emails", effect.id, not happened, OPERATOR)
    assert details_of(connection)["message_id"] == sent
    if happened:
        anew = begun(connection, next_attempt(connection, lease))[1].message_id
        assert details_of(connection)["message_id"] == anew


@HARMFUL
def test_only_an_email_has_a_message_id_that_is_lost(connection: PgConnection, kind: effects.Kind) -> None:
    lease = lease_of(connection)
    restored(connection, OPERATOR)
    assert (SEARCH_BY in str(begun(connection, lease, kind)[1].refusal)) is (kind is MAIL)


@pytest.mark.parametrize("kind", [PAYMENT, WEBHOOK, REFUND], ids=lambda kind: kind.name)
def test_the_key_that_others_recognize_is_the_same_after_a_restore(
    connection: PgConnection, kind: effects.Kind
) -> None:
    lease = lease_of(connection)
    before = begun(connection, lease, kind)[1]
    fetch_all(connection, f"DELETE FROM rowcall.{kind.table.name}")
    restored(connection, OPERATOR)
    after = begun(connection, next_attempt(connection, lease), kind)[1]
    assert after.id != before.id
    assert (after.idempotency_key, after.event_id) == (before.idempotency_key, before.event_id)


def test_the_message_id_is_recorded_though_the_handler_does_not_return_it(connection: PgConnection) -> None:
    lease = lease_of(connection, created_at="now()")
    _, effect = begun(connection, lease)
    effects.applied(connection, lease, effect, "250 queued", {})
    assert stored(connection)["message_id"] == effect.message_id


def test_the_command_counts_what_the_backup_has_and_asks_first(environment: dict[str, str]) -> None:
    assert (
        "there is no terminal to ask for confirmation; use --yes"
        in rowcall(environment, "effects", "after-restore").stderr
    )
    before = json.loads(rowcall(environment, "effects", "after-restore", "--yes", "--json").stdout)
    assert rowcall(environment, "enqueue", "noop").returncode == 0
    assert rowcall(environment, "enqueue", "noop", "{}", "--run-at", "2100-01-01T00:00:00+00:00").returncode == 0
    told = rowcall(environment, "effects", "after-restore", "--yes")
    runs, due = before["runs"] + 2, before["due"] + 1
    assert told.stdout == f"restore recorded; unfinished runs in the backup: {runs} (due: {due})\n"
    assert "`rowcall effects list --state unknown` shows what to resolve" in told.stderr


def test_the_command_says_which_workers_to_stop_first(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        register(connection, Registration("here", "host", 1, "1", None, ["noop"], 1, 30))
    refused = rowcall({**environment, "DATABASE_URL": fresh_url}, "effects", "after-restore")
    assert "1 worker is running on this database: stop every worker first" in refused.stderr
    told = rowcall({**environment, "DATABASE_URL": fresh_url}, "effects", "after-restore", "--yes")
    assert told.returncode == 0
    assert "1 worker is running on this database: stop every worker, and repeat the command" in told.stderr


def test_the_command_sees_the_worker_whose_row_is_newer_than_the_backup(
    environment: dict[str, str], fresh_url: str
) -> None:
    with closing(database.connect(fresh_url, "rowcall worker heartbeat")):
        told = rowcall({**environment, "DATABASE_URL": fresh_url}, "effects", "after-restore", "--yes")
    assert "workers are connected to this database: stop every worker" in " ".join(told.stderr.split())
