"""Housekeeping: walk through the runs page by page, each in a transaction of its own, and let go of what is due.

The scheduled runs and `rowcall prune` do the same here; they differ in how they open a transaction.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from rowcall.base.database import PgConnection
from rowcall.base.files import Files
from rowcall.queue.retention import prune
from rowcall.queue.retention.prune import BEGINNING, Page, Place, Retention
from rowcall.status import FINAL

NOTHING_YET = {"looked_at": 0, "deleted": 0, "made_bare": 0, "archived": 0, "occurrences": 0}


class Steps(Protocol):
    """Short transactions, and a place to keep in one where to go on: a handler's run has both."""

    def step(self) -> AbstractContextManager[PgConnection]:
        """One transaction, committed at the block's end."""

    def save(self, connection: PgConnection, what: Any) -> None:
        """Keep this for the next attempt, in the step's transaction."""


class Progress(NamedTuple):
    """How far a walk is, by the time that it goes through, and what it has counted so far."""

    share: float
    counts: Mapping[str, int]


@dataclass(frozen=True)
class PruneOptions:
    """How a walk goes: in which transactions, into which archive if at all, and whether it only looks.

    `saved` is where an earlier attempt had come to.
    """

    steps: Steps
    archive: Files | None = None
    dry: bool = False
    saved: Mapping[str, Any] | None = None


def prune_runs(policy: Mapping[str, Any], ways: PruneOptions) -> Iterator[Progress]:
    """Let go of runs whose time is over, then of old occurrences, by the payload of prune_runs."""
    walk = _Walk(Retention(policy["keep_days"], policy["types"]), policy["batch"], bare=False, ways=ways)
    yield from walk.pages()
    yield from walk.occurrences(policy["keep_occurrences_days"])


def expire_keys(policy: Mapping[str, Any], ways: PruneOptions) -> Iterator[Progress]:
    """Let go of the bare rows of pruned runs, and so of their keys, by the payload of expire_keys.

    The archive has them already, with all details, if it was to have them.
    """
    types = {name: dict.fromkeys(FINAL, days) for name, days in policy["types"].items()}
    retention = Retention(dict.fromkeys(FINAL, policy["keep_days"]), types)
    yield from _Walk(retention, policy["batch"], bare=True, ways=replace(ways, archive=None)).pages()


class _Walk:
    """One walk, and what it has counted."""

    def __init__(self, retention: Retention, batch: int, bare: bool, ways: PruneOptions) -> None:
        self._retention = retention
        self._batch = batch
        self._bare = bare
        self._ways = ways
        saved = ways.saved or {"after": BEGINNING, "counts": NOTHING_YET}
        self._after: Place = (saved["after"][0], saved["after"][1])
        # An attempt of an older version may have counted less.
        self._counts: dict[str, int] = {**NOTHING_YET, **saved["counts"]}

    def pages(self) -> Iterator[Progress]:
        """Go on from page to page, as long as they are full."""
        began = 0.0
        page = self._next()
        while page is not None:
            began = max(began, page.seconds_left)
            yield Progress(1 - page.seconds_left / began if began else 1, self._counts)
            page = self._next() if page.looked_at == self._batch else None
        yield Progress(1, self._counts)

    def occurrences(self, days: float) -> Iterator[Progress]:
        """Delete old occurrences, batch by batch, or count all of them at once."""
        gone = self._batch
        while gone == self._batch:
            with self._ways.steps.step() as connection:
                if self._ways.dry:
                    gone, old = 0, prune.count_occurrences(connection, days)
                else:
                    gone = old = prune.delete_occurrences(connection, days, self._batch)
                counted = self._counted(connection, self._after, {"occurrences": old})
            self._counts = counted
            yield Progress(1, self._counts)

    def _next(self) -> Page | None:
        """Look at a page and take what is due.  While that is written to the archive, no transaction is open."""
        steps, archive, packed = self._ways.steps, None if self._ways.dry else self._ways.archive, None
        with steps.step() as connection:
            page = prune.look(connection, self._retention, self._after, self._batch, self._bare)
            if page is None:
                return None
            if archive and page.due:
                packed = pack(page, prune.whole(connection, page))
            else:
                counted = self._take(connection, page)
        if archive and packed:
            archive.write(packed.path, packed.content)
            with steps.step() as connection:
                counted = self._take(connection, page, packed.runs)
        self._after, self._counts = page.last, counted
        return page

    def _take(self, connection: PgConnection, page: Page, archived: int = 0) -> dict[str, int]:
        taken = prune.would_take(page) if self._ways.dry else prune.take(connection, page)
        return self._counted(connection, page.last, {**taken, "looked_at": page.looked_at, "archived": archived})

    def _counted(self, connection: PgConnection, after: Place, more: Mapping[str, int]) -> dict[str, int]:
        """What is counted with this; kept in its transaction, with where to go on."""
        counts = {name: number + more.get(name, 0) for name, number in self._counts.items()}
        if not self._ways.dry:
            self._ways.steps.save(connection, {"after": after, "counts": counts})
        return counts


@dataclass(frozen=True)
class Packed:
    """Runs as they go into the archive: JSON lines, compressed, under a name that the same lines always have."""

    path: str
    content: bytes
    runs: int


def pack(page: Page, lines: Iterable[str]) -> Packed:
    """Pack the runs of a page.

    An attempt that is repeated writes the same file again.  Where other runs, or the same in another state, have the
    same first and last, the digest keeps theirs from being overwritten.
    """
    packed, digest, runs = io.BytesIO(), hashlib.sha256(), 0
    # Without a name and a time of its own in it, the same lines are the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        for line in lines:
            text = f"{line}\n".encode()
            digest.update(text)
            file.write(text)
            runs += 1
    asked_for = datetime.fromisoformat(page.last[0]).astimezone(UTC)
    name = f"runs-{page.due[0]}-{page.due[-1]}-{digest.hexdigest()[:12]}.jsonl.gz"
    return Packed(f"{asked_for:%Y/%m}/{name}", packed.getvalue(), runs)
