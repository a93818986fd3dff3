"""Exchange: write a worker's results and claim its next runs, in as few statements as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rowcall.base.database import PgConnection
from rowcall.queue.claims.claim import claim
from rowcall.queue.claims.claim_limited import claim_limited
from rowcall.queue.claims.request import ClaimRequest, ClaimResult, Limited
from rowcall.queue.finish import Done, succeed


def exchange(connection: PgConnection, worker: str, finished: Sequence[Done], request: ClaimRequest) -> ClaimResult:
    """Write successes and claim for the free slots, in queues with and without a limit.

    A busy worker sends its results with its claim.  Queues with a limit cost a statement only if something in them is
    due; they come first if the previous exchange found that they have the most urgent or the longest-due run.  Nothing
    is claimed ahead from them, because a waiting run would occupy a place.
    """
    if not (request.limit or request.ahead):
        return ClaimResult([], {}, request.limited, finished=succeed(connection, finished))
    if request.limited is Limited.FIRST and request.limit:
        # Write the successes first, so that the claim can use the places that they free.
        written = ClaimResult([], {}, finished=succeed(connection, finished))
        first = claim_limited(connection, worker, request)
        return written | first | claim(connection, worker, _less(request, first))
    found = claim(connection, worker, request, finished)
    rest = _less(request, found)
    if not (found.limited and rest.limit):
        return found
    return found | claim_limited(connection, worker, rest)


def _less(request: ClaimRequest, taken: ClaimResult) -> ClaimRequest:
    """Return the same request for the remaining slots."""
    return replace(request, limit=max(request.limit - len(taken.claimed), 0))
