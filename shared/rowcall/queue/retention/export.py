"""Export: write a month of the archive table to one file, as CSV or Parquet, portion by portion."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Any, NamedTuple

from rowcall.base.database import PgConnection, Row, fetch_all, fetch_value
from rowcall.base.errors import ParquetMissing
from rowcall.base.files import Files
from rowcall.queue.fragments import IN_ORDER

# How many runs are read at a time; each can have a log and attempts of a megabyte.
PORTION = 100

# How large a row group of Parquet may become in memory.
GROUP_RUNS, GROUP_CHARACTERS = 10_000, 32 * 1024 * 1024

# The form of a column: how it is read, and its type in Parquet.
TEXT, INTEGER, TIME, JSON = "text", "int64", "timestamp", "json"

FORMS: Mapping[str, str] = {
    **dict.fromkeys(("id", "definition_id", "priority", "attempts", "max_attempts", "lease_no", "suspect"), INTEGER),
    **dict.fromkeys(("job_type", "queue", "status", "locked_by", "natural_key", "unique_mode", "held_key"), TEXT),
    **dict.fromkeys(("content_fingerprint", "idempotency_key", "key_owner", "request_fingerprint"), TEXT),
    **dict.fromkeys(("last_error", "error_type", "last_stack", "trace_parent", "created_by"), TEXT),
    **dict.fromkeys(("scheduled_for", "run_at", "locked_until", "cancel_requested_at", "failed_at"), TIME),
    **dict.fromkeys(("started_at", "finished_at", "created_at", "updated_at", "pruned_at", "archived_at"), TIME),
    **dict.fromkeys(("payload", "progress", "result", "attempts_ended", "log", "further_keys"), JSON),
}

# JSON as PostgreSQL writes it, so that no number is rounded.
_SELECTED = ", ".join(f"{name}::text AS {name}" if form == JSON else name for name, form in FORMS.items())

# When the first of these runs was archived.  If the month is dropped, and made again for runs that are pruned later,
# this is another time, so that their file does not replace that of the first ones.
SINCE = """
SELECT to_char(min(archived_at) AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSUS') AS since FROM rowcall.archived_runs
WHERE created_at >= %(month)s::date::timestamp AT TIME ZONE 'UTC'
    AND created_at < (%(month)s::date + interval '1 month') AT TIME ZONE 'UTC'
"""

# One partition, in the order of its primary key.
EXPORT = f"""{IN_ORDER} SET LOCAL TIME ZONE 'UTC';
SELECT {_SELECTED} FROM rowcall.archived_runs
WHERE id > %(after_id)s AND created_at >= %(month)s::date::timestamp AT TIME ZONE 'UTC'
    AND created_at < (%(month)s::date + interval '1 month') AT TIME ZONE 'UTC'
ORDER BY id LIMIT %(portion)s
"""

Portions = Iterable[list[Row]]


class Exported(NamedTuple):
    """A file with the runs of a month, and how many they are."""

    path: str
    runs: int
    size: int


def export_month(
    step: Callable[[], AbstractContextManager[PgConnection]], files: Files, month: date, format_name: str
) -> Exported:
    """Write a month of the archive table to a file; each portion is read in a short transaction.

    A repeated export replaces the file, but not that of runs of this month that were dropped before.
    """
    suffix, form = FORMATS[format_name]
    runs = 0

    def portions() -> Iterator[list[Row]]:
        nonlocal runs
        after_id = 0
        while rows := read(after_id):
            runs += len(rows)
            after_id = rows[-1]["id"]
            yield rows

    def read(after_id: int) -> list[Row]:
        with step() as connection:
            return fetch_all(connection, EXPORT, {"month": month, "after_id": after_id, "portion": PORTION})

    with step() as connection:
        since = fetch_value(connection, SINCE, {"month": month}) or "empty"
    written = files.write(f"{month:%Y/%m}/runs-{month:%Y-%m}-{since}.{suffix}", form(portions()))
    return Exported(written.path, runs, written.size)


def as_csv(read: Portions) -> Iterator[bytes]:
    """Write the runs as compressed CSV with a header; an empty field is NULL."""
    pieces = _Pieces()
    with gzip.GzipFile(filename="", mode="wb", fileobj=pieces, mtime=0) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(FORMS)
        for rows in read:
            writer.writerows([_plain(value) for value in row.values()] for row in rows)
            yield pieces.taken()
        text.detach()
    yield pieces.taken()


def as_parquet(read: Portions) -> Iterator[bytes]:
    """Write the runs as Parquet; JSON is text."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ParquetMissing from None
    types = {TEXT: pyarrow.string(), JSON: pyarrow.string(), INTEGER: pyarrow.int64()}
    types[TIME] = pyarrow.timestamp("us", tz="UTC")
    schema = pyarrow.schema([(name, types[form]) for name, form in FORMS.items()])
    pieces = _Pieces()
    with pyarrow.parquet.ParquetWriter(pieces, schema, compression="zstd") as writer:
        for rows in _groups(read):
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            yield pieces.taken()
    yield pieces.taken()


def _groups(read: Portions) -> Iterator[list[Row]]:
    """Join portions, because small row groups make Parquet files large and slow."""
    group: list[Row] = []
    characters = 0
    for rows in read:
        group += rows
        characters += sum(len(value) for row in rows for value in row.values() if isinstance(value, str))
        if len(group) >= GROUP_RUNS or characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class _Pieces(io.RawIOBase):
    """A file whose content is taken while it is written, so that it never is in memory as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self._content = bytearray()
        self._size = 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return how many bytes have been written, including those that were taken."""
        return self._size

    def write(self, data: Any) -> int:
        """Add these bytes."""
        self._content += data
        self._size += len(data)
        return len(data)

    def taken(self) -> bytes:
        """Return what has been written since the last time."""
        content, self._content = bytes(self._content), bytearray()
        return content


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


# Format -> the end of the file's name, and its writer.
FORMATS: Mapping[str, tuple[str, Callable[[Portions], Iterator[bytes]]]] = {
    "csv": ("csv.gz", as_csv),
    "parquet": ("parquet", as_parquet),
}
