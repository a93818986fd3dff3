"""Apply: make the definitions in the table match a file or the code; all of them or none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.access.audit import Operator
from rowcall.base.database import Connection, Row, fetch_all
from rowcall.base.errors import DefinitionFileInvalid, DefinitionInvalid
from rowcall.definitions.check import as_sent, checked, in_words
from rowcall.definitions.content import Content
from rowcall.definitions.store import Change, list_definitions, put, remove
from rowcall.job_types import Catalogue

# The sign at the start of each change's line.
SIGNS = {"created": "+", "changed": "~", "adopted": "=", "removed": "-", "extra": "?", "foreign": "!"}

SENTENCES = {
    "adopted": "unchanged, now managed by the {managed_by}",
    "removed": "removed",
    "extra": "no longer in the {managed_by}; `rowcall definitions apply {file}--prune` removes it",
    "foreign": "not changed: managed by the {managed_by}",
}

# An arbitrary number: "definiti" on a telephone's keys.
ADVISORY_LOCK = 33346484

# Without this lock, two concurrent calls of `apply` could deadlock on their rows.
LOCK_OUT_OTHERS = f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"


@dataclass(frozen=True)
class Difference:
    """What `apply` did to one definition: a Change of `put`, `removed` or `extra`.

    An extra definition is in the table but no longer in the file or code; `apply` removes it only on request.
    """

    name: str
    change: str
    row: Row
    changes: Mapping[str, tuple[Any, Any]]


def apply_file(
    connection: Connection, file: Path, catalogue: Catalogue, operator: Operator, prune: bool = False
) -> list[Difference]:
    """Apply this file to the definitions that files manage."""
    # Imported here, because a worker reads definitions only from the table.
    from rowcall.definitions.file import read_file

    return _apply(connection, _checked(read_file(file), catalogue, str(file)), catalogue, operator, "file", prune)


def apply_code(
    connection: Connection, catalogue: Catalogue, operator: Operator, prune: bool = False
) -> list[Difference]:
    """Apply the code's declarations; do not change definitions that a file or the API manages now."""
    declared = {name: declaration.content for name, declaration in catalogue.definitions.items()}
    contents = _checked(declared, catalogue, "the code")
    return _apply(connection, contents, catalogue, operator, "code", prune)


def _checked(raw: Mapping[str, Mapping[str, Any]], catalogue: Catalogue, source: str) -> dict[str, Content]:
    """Check all contents; raise one error that lists every invalid definition."""
    contents: dict[str, Content] = {}
    wrong: list[str] = []
    for name, fields in raw.items():
        try:
            contents[name] = checked(name, fields, catalogue)
        except DefinitionInvalid as error:
            wrong += error.sentences
    if wrong:
        raise DefinitionFileInvalid(f"{source}: nothing was applied:\n" + "\n".join(wrong))
    return contents


def _apply(
    connection: Connection,
    contents: Mapping[str, Content],
    catalogue: Catalogue,
    operator: Operator,
    managed_by: str,
    prune: bool,
) -> list[Difference]:
    fetch_all(connection, LOCK_OUT_OTHERS)
    left = [
        row
        for row in list_definitions(connection, locked=True)
        if row["name"] not in contents and row["managed_by"] == managed_by
    ]
    done = [_kept(connection, name, content, catalogue, operator, managed_by) for name, content in contents.items()]
    for row in left:
        if prune:
            remove(connection, row["name"], operator)
        done.append(Difference(row["name"], "removed" if prune else "extra", row, {}))
    return sorted(done, key=lambda difference: difference.name)


def _kept(
    connection: Connection, name: str, content: Content, catalogue: Catalogue, operator: Operator, managed_by: str
) -> Difference:
    done = put(connection, name, content, catalogue, managed_by, operator)
    changed = done.change in (Change.CREATED, Change.CHANGED)
    return Difference(name, done.change, done.row, differences(done.before, content) if changed else {})


def differences(before: Content | None, after: Content) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, with their values before and after."""
    was = as_sent(before) if before else {}
    return {name: (was.get(name), value) for name, value in as_sent(after).items() if was.get(name) != value}


def lines(done: Sequence[Difference]) -> list[str]:
    """Format the changes: a line for each changed definition, and one line for the rest."""
    changed = [f"{SIGNS[one.change]} {one.name}: {_sentence(one)}" for one in done if one.change in SIGNS]
    unchanged = sum(one.change == Change.UNCHANGED for one in done)
    return [*changed, f"definitions: {unchanged} unchanged"] if unchanged else changed


def _sentence(one: Difference) -> str:
    if one.change == Change.CREATED:
        due = one.row["next_run_at"]
        local = due and due.astimezone(Content.of(one.row).zone).isoformat(sep=" ", timespec="minutes")
        return f"new, {one.row['job_type']}, {f'due next {local}' if due else 'no schedule'}"
    if one.change == Change.CHANGED:
        return ", ".join(
            f"{name} {_shown(name, was)} -> {_shown(name, now)}" for name, (was, now) in one.changes.items()
        )
    managed_by = one.row["managed_by"]
    return SENTENCES[one.change].format(
        managed_by={"api": "API"}.get(managed_by, managed_by), file="FILE " if managed_by == "file" else ""
    )


def _shown(name: str, value: object) -> str:
    shown = in_words({name: value})[name]
    return "-" if shown is None else json.dumps(shown, ensure_ascii=False)
