"""Lists: as tables that fit the terminal, untruncated and with exact times in a pipe, and as JSON for programs."""

from __future__ import annotations

import functools
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from rowcall.base.durations import relative
from rowcall.cli.terminal.output import show_json, shown

GAP = "  "
ELLIPSIS = "…"

# No column is made narrower than this, even if the line is then too long.
NARROWEST = 8

# The last column is wrapped within its own width if that is at least this; otherwise the whole row is wrapped.
COLUMN_LEAST = 24


@dataclass(frozen=True)
class Table:
    """How a list is printed, according to the command's options."""

    as_json: bool = False
    wide: bool = False
    utc: bool = False

    def show(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Iterable[str],
        now: datetime | None = None,
        empty: str = "",
        more: Iterable[str] = (),
        whole: Iterable[str] = (),
        spare: Iterable[str] = (),
    ) -> None:
        """Print rows under their headings, or `empty` if there are none.

        On a terminal, times are relative to `now`, if it is given; elsewhere the columns `more` are printed too.  Where
        the terminal is narrow, texts are cut except those of the columns `whole`, and then columns are left out: those
        of `spare` first, then the last ones.  A line that is still too long is wrapped at a space.
        """
        if self.as_json:
            show_json(rows)
        elif not rows:
            click.echo(empty)
        else:
            names = [*columns, *(() if self.cuts else more)]
            since = now if sys.stdout.isatty() and not self.utc else None
            cells = {name: [name, *(self._cell(row[name], since) for row in rows)] for name in names}
            widths = {name: max(map(len, column)) for name, column in cells.items()}
            if self.cuts:
                # A truncated number or time would read as a different one.
                texts = {name for name in names if _is_text([row[name] for row in rows])} - set(whole)
                room = shutil.get_terminal_size().columns + len(GAP)
                widths = _fitted(_kept(widths, room, texts, [*spare, *reversed(names)], set(whole)), room, texts)
            _print(cells, widths, shutil.get_terminal_size().columns if self.cuts else None)

    @property
    def cuts(self) -> bool:
        """Whether the table is cut to fit: on a terminal, unless --wide was given."""
        return sys.stdout.isatty() and not self.wide

    def _cell(self, value: object, since: datetime | None) -> str:
        if isinstance(value, datetime):
            if since is not None:
                return relative(value, since)
            return shown(value.astimezone(UTC)).replace("+00:00", "Z") if self.utc else shown(value)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return shown(", ".join(value) or None)
        return shown(value)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a list; they become its argument `table`."""

    @functools.wraps(command)
    def with_table(as_json: bool, wide: bool, utc: bool, **options: Any) -> None:
        command(table=Table(as_json, wide, utc), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--utc", is_flag=True, help="Show exact times, in UTC.  [default on a terminal: relative]"),
        click.option("--wide", is_flag=True, help="Show all columns, untruncated.  [default in a pipe]"),
    ):
        with_table = option(with_table)
    return with_table


def _is_text(values: Sequence[object]) -> bool:
    return any(isinstance(value, (str, list, dict)) for value in values) and not any(
        isinstance(value, datetime) for value in values
    )


def _print(cells: Mapping[str, Sequence[str]], widths: Mapping[str, int], columns: int | None) -> None:
    """Print the rows; wrap them at this width, if they must fit a terminal."""
    before_last = sum(widths.values()) - [*widths.values()][-1] + len(GAP) * (len(widths) - 1)
    for line in zip(*(cells[name] for name in widths), strict=True):
        padded = (_cut(cell, width).ljust(width) for cell, width in zip(line, widths.values(), strict=True))
        text = GAP.join(padded).rstrip()
        click.echo(text if columns is None or len(text) <= columns else _folded(text, before_last, columns))


def _folded(text: str, before_last: int, columns: int) -> str:
    """Wrap a row at spaces: its last column, or the whole row if that column is too narrow."""
    indent = before_last if columns - before_last >= COLUMN_LEAST else len(GAP)
    kept = text[:before_last] if indent == before_last else ""
    rest = textwrap.wrap(
        text[len(kept) :],
        columns,
        initial_indent=" " * len(kept),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return kept + "\n".join(rest)[len(kept) :]


def _kept(
    widths: Mapping[str, int], room: int, texts: Collection[str], spare: Iterable[str], whole: Collection[str]
) -> dict[str, int]:
    """Return the columns that fit if texts are cut as far as allowed; at least one is kept."""
    kept = dict(widths)
    for name in spare:
        least = (min(width, NARROWEST) if one in texts else width for one, width in kept.items())
        if sum(width + len(GAP) for width in least) <= room or len(kept) == 1:
            break
        if name not in whole:
            kept.pop(name, None)
    return kept


def _fitted(widths: Mapping[str, int], room: int, texts: Collection[str]) -> dict[str, int]:
    """Return widths that fit, by narrowing only the columns of text, the widest first."""
    fitted = dict(widths)
    while sum(width + len(GAP) for width in fitted.values()) > room:
        widest = max((name for name in fitted if name in texts), key=fitted.__getitem__, default=None)
        if widest is None or fitted[widest] <= NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1].rstrip() + ELLIPSIS
