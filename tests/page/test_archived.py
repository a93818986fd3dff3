"""A run in the archive table: the page shows all that it had, and offers only to copy it."""

from __future__ import annotations

from rowcall.base.database import PgConnection
from rowcall.queue.retention.walk import PruneOptions, prune_runs
from rowcall.status import Event, Status
from tests.page.conftest import Browse
from tests.page.test_run import buttons, ended
from tests.support.housekeeping import TYPES, Rehearsal
from tests.support.rows import run_in
from tests.support.run_log import insert_lines


def test_an_archived_run_shows_all_it_had_and_can_only_be_copied(browse: Browse, committed: PgConnection) -> None:
    moment = dict.fromkeys(("created_at", "finished_at", "failed_at"), "'2020-05-10 12:00+00'")
    run_id = run_in(committed, Status.DEAD, **moment, payload="'{\"user_id\": 4711}'")["id"]
    ended(committed, run_id, 1, Event.FAIL, "the disk was full")
    insert_lines(committed, run_id, [1])
    policy = TYPES["prune_runs"].checked({})
    *_, last = prune_runs(policy, PruneOptions(Rehearsal(committed), to_table=True))
    committed.commit()
    assert last.counts["archived"] == 1
    screen = browse().get(f"/runs/{run_id}")
    assert buttons(screen) == {"Enqueue the copy"}
    for shown in ("it is in the archive", "4711", "the disk was full", "line 1"):
        assert shown in screen.text, shown
    assert f"/admin/runs/{run_id}" in browse().get("/runs?created_before=2021-01-01T00:00:00Z").links
    assert browse().get("/find", q=str(run_id)).address == f"/admin/runs/{run_id}"
