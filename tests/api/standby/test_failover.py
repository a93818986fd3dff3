"""After a failover or a failed connection, the standby answers only when it is known to be well."""

from __future__ import annotations

from rowcall.base import database
from rowcall.base.database import fetch_all
from rowcall.base.errors import DatabaseUnreachable
from rowcall_api.standby.standby import GONE
from tests.api.standby.application import Application, answers, application
from tests.support.processes import wait_until
from tests.support.standby import Leader, StandbyServer


def test_a_standby_that_stays_with_a_former_leader_does_not_answer_and_one_of_the_new_leader_does(
    ahead: Leader, behind: StandbyServer
) -> None:
    with ahead.standby() as promoted:
        promoted.promote()
        # The former leader writes more than the new one, so positions alone would call its standby young.
        ahead.run("SELECT pg_switch_wal()")
        ahead.run("UPDATE rowcall.schedule_ticks SET ticked_at = now()")
        behind.catch_up()
        with application(promoted.url, behind.url) as asked:
            assert (answers(asked), asked.answered_by()) == (False, "leader")
            assert asked.standby.away == "it has not followed the leader to its timeline yet"
        follower = ahead.succeeded_by(promoted)
        with follower.standby() as following, application(promoted.url, following.url) as asked:
            wait_until(lambda: answers(asked), "the new leader's standby answers")
            assert asked.answered_by() == "standby"


def test_after_a_request_has_found_the_standby_gone_a_look_opens_a_new_connection(
    asked: Application, behind: StandbyServer
) -> None:
    before = sessions(behind)
    asked.standby.suspect(DatabaseUnreachable("no answer"))
    assert asked.standby.away == GONE
    wait_until(lambda: answers(asked), "the standby answers")
    assert sessions(behind) - before


def sessions(server: StandbyServer) -> set[int]:
    """Return the processes of the clients that are connected."""
    with database.internal_transaction(server.url) as connection:
        rows = fetch_all(
            connection,
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
    return {row["pid"] for row in rows}
