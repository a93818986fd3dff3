"""The housekeeping walk: reads the runs page by page, each in a separate transaction, and prunes those that are due.

The scheduled runs and `rowcall prune` share it; they differ in how they open a transaction.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from rowcall.base.database import PgConnection
from rowcall.base.files import Files
from rowcall.queue.failures.count import delete_old_counts
from rowcall.queue.retention import prune
from rowcall.queue.retention.archive import drop_month, old_months
from rowcall.queue.retention.export import export_month
from rowcall.queue.retention.prune import BEGINNING, Page, Place, Retention
from rowcall.queue.series.record import delete_old_run_counts
from rowcall.status import FINAL

NOTHING_YET = dict.fromkeys(("looked_at", "deleted", "made_bare", "archived", "months_dropped", "occurrences"), 0)


class Steps(Protocol):
    """Short transactions, and a way to save where to continue: a handler's run has both."""

    def step(self) -> AbstractContextManager[PgConnection]:
        """Open a transaction that commits at the end of the block."""

    def save(self, connection: PgConnection, what: Any) -> None:
        """Save this for the next attempt, in the step's transaction."""


class Progress(NamedTuple):
    """The progress of a walk, as a share of the time that it covers, and its counts so far."""

    share: float
    counts: Mapping[str, int]


@dataclass(frozen=True)
class PruneOptions:
    """The transactions and the archive of a walk; `dry` means only to count; `saved` is from an earlier attempt.

    `archive` is where files are written: of the pages, or, if they go `to_table`, of the months that are dropped.
    """

    steps: Steps
    archive: Files | None = None
    to_table: bool = False
    dry: bool = False
    saved: Mapping[str, Any] | None = None


def prune_runs(policy: Mapping[str, Any], options: PruneOptions) -> Iterator[Progress]:
    """Prune runs whose retention is over, then other old rows; `policy` is the payload of prune_runs.

    Operations are kept for the longest of `keep_days`.
    """
    walk = _Walk(Retention(policy["keep_days"], policy["types"]), policy["batch"], bare=False, options=options)
    yield from walk.pages()
    if options.to_table and not options.dry and policy["keep_archive_months"] is not None:
        yield from walk.months(policy["keep_archive_months"], policy["export_archive"])
    yield from walk.occurrences(policy["keep_occurrences_days"])
    yield from walk.counts(delete_old_counts)
    yield from walk.counts(delete_old_run_counts)
    yield from walk.counts(prune.delete_incidents)
    if not options.dry:
        with options.steps.step() as connection:
            prune.delete_operations(connection, max(policy["keep_days"].values()))


def expire_keys(policy: Mapping[str, Any], options: PruneOptions) -> Iterator[Progress]:
    """Delete the bare rows of pruned runs, and with them their keys; `policy` is the payload of expire_keys.

    The archive, if there is one, already has their details.
    """
    types = {name: dict.fromkeys(FINAL, days) for name, days in policy["types"].items()}
    retention = Retention(dict.fromkeys(FINAL, policy["keep_days"]), types)
    options = replace(options, archive=None, to_table=False)
    yield from _Walk(retention, policy["batch"], bare=True, options=options).pages()


class _Walk:
    """One walk through the runs, with its position and its counts."""

    def __init__(self, retention: Retention, batch: int, bare: bool, options: PruneOptions) -> None:
        self._retention = retention
        self._batch = batch
        self._bare = bare
        self._options = options
        saved = options.saved or {"after": BEGINNING, "counts": NOTHING_YET}
        self._after: Place = (saved["after"][0], saved["after"][1])
        # An attempt that ran an older version may have saved fewer counts.
        self._counts: dict[str, int] = {**NOTHING_YET, **saved["counts"]}

    def pages(self) -> Iterator[Progress]:
        """Prune page after page, until one has only runs that are too new."""
        began = 0.0
        page = self._next()
        while page is not None:
            began = max(began, page.seconds_left)
            yield Progress(1 - page.seconds_left / began if began else 1, self._counts)
            page = self._next()
        yield Progress(1, self._counts)

    def occurrences(self, days: float) -> Iterator[Progress]:
        """Delete old occurrences, batch by batch; a dry run counts all of them at once."""
        gone = self._batch
        while gone == self._batch:
            with self._options.steps.step() as connection:
                if self._options.dry:
                    gone, old = 0, prune.count_occurrences(connection, days)
                else:
                    gone = old = prune.delete_occurrences(connection, days, self._batch)
                counted = self._counted(connection, self._after, {"occurrences": old})
            self._counts = counted
            yield Progress(1, self._counts)

    def months(self, keep: int, export: str | None) -> Iterator[Progress]:
        """Drop the months of the archive table that are old enough; if asked, write each to a file first."""
        steps, archive = self._options.steps, self._options.archive
        with steps.step() as connection:
            months = old_months(connection, keep)
        for month in months:
            written = export_month(steps.step, archive, month, export).runs if archive and export else None
            with steps.step() as connection:
                drop_month(connection, month, written)
                counted = self._counted(connection, self._after, {"months_dropped": 1})
            self._counts = counted
            yield Progress(1, self._counts)

    def counts(self, delete: Callable[[PgConnection, int], int]) -> Iterator[Progress]:
        """Delete old per-minute counts, batch by batch, without reporting how many."""
        gone = 0 if self._options.dry else self._batch
        while gone == self._batch:
            with self._options.steps.step() as connection:
                gone = delete(connection, self._batch)
            if gone == self._batch:
                yield Progress(1, self._counts)

    def _next(self) -> Page | None:
        """Read a page and prune its due runs.  No transaction is open while they are written to the archive."""
        options, steps, packed = self._options, self._options.steps, None
        archive = None if options.dry or options.to_table else options.archive
        with steps.step() as connection:
            page = prune.read_page(connection, self._retention, self._after, self._batch, self._bare)
            if page is None:
                return None
            if archive and page.due:
                packed = pack(page, prune.archived(connection, page))
            else:
                counted = self._prune(connection, page)
        if archive and packed:
            archive.write(packed.path, packed.content)
            with steps.step() as connection:
                counted = self._prune(connection, page, packed.runs)
        self._after, self._counts = page.last, counted
        return page

    def _prune(self, connection: PgConnection, page: Page, in_files: int = 0) -> dict[str, int]:
        options = self._options
        pruned = (
            prune.would_prune(page, archives=options.to_table or options.archive is not None)
            if options.dry
            else prune.prune_page(connection, page, options.to_table)
        )
        return self._counted(connection, page.last, {"looked_at": page.looked_at, "archived": in_files, **pruned})

    def _counted(self, connection: PgConnection, after: Place, more: Mapping[str, int]) -> dict[str, int]:
        """Return the counts with these added; save them and the position in the same transaction."""
        counts = {name: number + more.get(name, 0) for name, number in self._counts.items()}
        if not self._options.dry:
            self._options.steps.save(connection, {"after": after, "counts": counts})
        return counts


@dataclass(frozen=True)
class Packed:
    """Runs in the form of the archive: compressed lines of JSON, under a name that depends only on the lines."""

    path: str
    content: bytes
    runs: int


def pack(page: Page, lines: Iterable[str]) -> Packed:
    """Pack the runs of a page.

    A repeated attempt writes the same file again.  The digest in the name keeps it from overwriting a file of other
    runs, or of the same runs in another state, with the same first and last id.
    """
    packed, digest, runs = io.BytesIO(), hashlib.sha256(), 0
    # Without a name and a time in the header, the same lines give the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        for line in lines:
            text = f"{line}\n".encode()
            digest.update(text)
            file.write(text)
            runs += 1
    created = datetime.fromisoformat(page.last[0]).astimezone(UTC)
    name = f"runs-{page.due[0]}-{page.due[-1]}-{digest.hexdigest()[:12]}.jsonl.gz"
    return Packed(f"{created:%Y/%m}/{name}", packed.getvalue(), runs)
