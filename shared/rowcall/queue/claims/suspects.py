"""Suspects: a run whose lease expired may have killed its worker, so each is claimed apart from the others."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rowcall.base.database import PgConnection
from rowcall.base.prepared import fetch_prepared
from rowcall.queue.claims.claim_limited import claim_limited_sql
from rowcall.queue.claims.lanes import LANES_OF_SUSPECTS, SERVED
from rowcall.queue.claims.request import ALONE, Claimed, ClaimRequest
from rowcall.queue.fragments import BY_INDEX

# Claims the suspect that has waited longest, in any queue.  Suspects are few, and job_runs_suspect contains no other
# runs.  If none is claimed, the last row says how many leases the due suspect with the most losses has lost.  That one
# waits for a worker without other runs, or for a place under a limit that a run of this worker occupies.
CLAIM_SUSPECT = claim_limited_sql(
    LANES_OF_SUSPECTS,
    lane_start="'-infinity'::timestamptz, 0",
    claimable=f"{SERVED} AND suspect > 0 AND (suspect < {ALONE} OR %(alone)s)",
    every_queue="OR due_lanes.max_running IS NULL",
    order="run_at, id",
    # "suspect > 0" is the predicate of the index.
    waiting=f"""(SELECT max(suspect) FROM (
        SELECT run.suspect FROM lanes_with_room JOIN rowcall.job_runs AS run USING (queue, priority)
        WHERE NOT EXISTS (SELECT FROM claimed) AND (lanes_with_room.room > 0
                OR EXISTS (SELECT FROM holders WHERE holders.name = run.queue AND holders.locked_by = %(worker)s))
            AND run.finished_at IS NULL AND run.suspect > 0 AND run.run_at <= now() AND {SERVED}
        ORDER BY run.suspect DESC LIMIT 1 FOR UPDATE OF run SKIP LOCKED
    ) AS waiting)""",
)


class Suspect(NamedTuple):
    """The result of claiming a suspect: the run, or None.

    `waits` means that another suspect is due and needs a worker without other runs.  `behind` means that a suspect is
    due in a queue whose limit is used up by a run of this worker.
    """

    claimed: Claimed | None
    waits: bool
    behind: bool = False


def claim_suspect(connection: PgConnection, worker: str, request: ClaimRequest, alone: bool) -> Suspect:
    """Claim one suspect; a suspect that must run alone is claimed only if this worker has no other run (`alone`)."""
    parameters = {**replace(request, limit=1).parameters(worker), "alone": alone}
    # The last row is no run: its payload says what else the claim found.
    *claimed, last = map(Claimed._make, fetch_prepared(connection, BY_INDEX + CLAIM_SUSPECT, parameters))
    waiting: int | None = last.payload["waiting"]
    if claimed or waiting is None:
        return Suspect(claimed[0] if claimed else None, waits=False)
    return Suspect(None, waits=waiting >= ALONE, behind=waiting < ALONE)
