"""Effects that dead and cancelled runs have left open: doctor reports them, and an operator can resolve them."""

from __future__ import annotations

import pytest

from rowcall import effects
from rowcall.access.audit import Operator
from rowcall.base.database import PgConnection, fetch_all
from rowcall.cli.doctor.health import open_effects
from rowcall.job_types import catalogue
from rowcall.queue import Explained, cancel_any
from rowcall.status import FINAL, Status
from tests.effects.attempts import MAIL, begun, lease_of

OPERATOR = Operator("cli:ada")


def left_open(connection: PgConnection, status: Status) -> int:
    """Return the id of a run that has ended with an intent."""
    lease = lease_of(connection)
    begun(connection, lease)
    fetch_all(
        connection,
        "UPDATE rowcall.job_runs SET status = %(status)s, locked_by = NULL, locked_until = NULL, finished_at = now()"
        " WHERE id = %(id)s",
        {"id": lease.run_id, "status": status},
    )
    return lease.run_id


def explained(connection: PgConnection, run_id: int) -> Explained:
    return effects.explain_with_effects(connection, run_id, {}, 30.0, catalogue())


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_a_run_that_ended_with_an_open_effect_is_named(connection: PgConnection, status: Status) -> None:
    run_id = left_open(connection, status)
    found = open_effects(connection)
    assert not found.good
    wanted = f"effects of dead or cancelled runs (run {run_id}) may have happened: 1 of sent_emails; "
    assert found.message.startswith(wanted)


def test_a_run_that_was_cancelled_by_force_is_explained_by_its_effect_which_can_be_resolved(
    connection: PgConnection,
) -> None:
    lease = lease_of(connection)
    _, effect = begun(connection, lease)
    cancel_any(connection, lease.run_id, OPERATOR, force=True)
    told = explained(connection, lease.run_id)
    assert told.message.endswith("; effects that may have happened: 1 of sent_emails")
    assert told.commands[:2] == (f"rowcall effects list --run {lease.run_id}", f"rowcall runs retry {lease.run_id}")
    effects.resolve(connection, MAIL.name, effect.id, True, OPERATOR)
    told = explained(connection, lease.run_id)
    assert "effects" not in told.message
    assert told.commands[0] == f"rowcall runs retry {lease.run_id}"
    assert open_effects(connection).good


@pytest.mark.parametrize("status", FINAL)
def test_a_run_without_an_open_effect_is_explained_as_before(connection: PgConnection, status: Status) -> None:
    run_id = left_open(connection, status)
    fetch_all(connection, "UPDATE rowcall.sent_emails SET state = 'refused'")
    assert "effects" not in explained(connection, run_id).message
