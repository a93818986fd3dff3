"""The request of a claim, and its result."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from rowcall.base.database import PgConnection
from rowcall.queue.claims.lanes import Lane, LaneKey, Position, find_lanes, heads_of, parameters_of_lanes, taken_of
from rowcall.status import Status


class Limited(StrEnum):
    """What a claim reports if something is due in queues with a limit, which it leaves to `claim_limited`.

    FIRST if such a queue has the first of the due lanes, otherwise LATER.
    """

    FIRST = "first"
    LATER = "later"


# A run that has lost this many leases in a row runs alone at its next attempt.
ALONE = 2


class Claimed(NamedTuple):
    """One attempt of one run; it belongs to the claiming worker until the lease ends.

    `suspect` is the number of leases that the run has lost in a row.  An attempt that its worker ends reduces
    this number to at most 1.  `waited` is how many seconds the run had been due when it was claimed.
    """

    run_id: int
    lease_no: int
    job_type: str
    payload: dict[str, Any]
    attempt: int
    max_attempts: int
    scheduled_for: datetime | None
    suspect: int = 0
    waited: float = 0.0

    @property
    def alone(self) -> bool:
        """Whether the run must run alone."""
        return self.suspect >= ALONE


@dataclass(frozen=True)
class ClaimRequest:
    """What a worker requests: types with their lease in seconds, at most `limit` runs, and queues (None: all).

    `ahead` is how many more runs it may claim beyond `limit`, of `quick_types` only.  `declared` maps the queues of
    types with a max_running to that limit.  `limited` is what the last claim reported about queues with a limit.
    `lanes` are the lanes that the worker knows, in the order of its visits (None: the claim finds all lanes first).
    """

    leases: Mapping[str, float]
    limit: int
    queues: Sequence[str] | None = None
    declared: Mapping[str, int] = field(default_factory=dict)
    limited: Limited | None = None
    ahead: int = 0
    quick_types: Sequence[str] = ()
    lanes: Sequence[Lane] | None = None

    def parameters(self, worker: str) -> dict[str, Any]:
        """Return the parameters of the claim statements."""
        return {
            "worker": worker,
            "job_types": list(self.leases),
            "leases": json.dumps(dict(self.leases)),
            "limit": self.limit,
            "ahead": self.ahead,
            "quick_types": list(self.quick_types),
            "queues": None if self.queues is None else list(self.queues),
            "declared": json.dumps(dict(self.declared)),
            **parameters_of_lanes(self.lanes or ()),
        }


def with_lanes(connection: PgConnection, request: ClaimRequest) -> ClaimRequest:
    """Return the request; if it has no lanes, add all lanes in which something is due."""
    return request if request.lanes is not None else replace(request, lanes=find_lanes(connection, request.queues))


@dataclass(frozen=True)
class ClaimResult:
    """What a claim found: the runs it took, and the runs whose lease had expired (id -> status now).

    If either is not empty, more may be due.  `limited` says whether something is due in queues with a limit.
    `contended` means that another claim has locked such a queue: look again at once.  `finished` are the runs whose
    success was written with the claim.  `heads` are the heads of the known lanes that have something due, and `taken`
    counts the runs claimed from each lane.
    """

    claimed: list[Claimed]
    expired: dict[int, Status]
    limited: Limited | None = None
    contended: bool = False
    finished: set[int] = field(default_factory=set)
    heads: Mapping[LaneKey, Position] = field(default_factory=dict)
    taken: Counter[LaneKey] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, ...]]) -> ClaimResult:
        """Build a result from the rows of a claim: the claimed runs, and the last row with what else it found."""
        *claimed, last = map(Claimed._make, rows)
        found = {name: value for name, value in last.payload.items() if value is not None}
        return cls(
            claimed,
            {int(run_id): Status(status) for run_id, status in found.get("expired", {}).items()},
            Limited(found["limited"]) if "limited" in found else None,
            contended=found.get("contended", False),
            finished=set(found.get("finished", ())),
            heads=heads_of(found.get("heads", ())),
            taken=taken_of(found.get("taken", ())),
        )

    def __or__(self, other: ClaimResult) -> ClaimResult:
        """Combine the results of two claims."""
        return ClaimResult(
            self.claimed + other.claimed,
            self.expired | other.expired,
            self.limited or other.limited,
            self.contended or other.contended,
            self.finished | other.finished,
            {**self.heads, **other.heads},
            self.taken + other.taken,
        )
