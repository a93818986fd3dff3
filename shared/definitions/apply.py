"""Apply: make the definitions of the table what a file, or the code, says; all of it or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.audit import Admin
from shared.database import Connection, Row
from shared.definitions.content import Content, checked, told
from shared.definitions.file import read_file
from shared.definitions.store import Change, list_definitions, put, remove
from shared.errors import DefinitionFileInvalid, DefinitionInvalid
from shared.job_types import Catalogue

# What applying did, and the sign that begins its line.
SIGNS = {"created": "+", "changed": "~", "removed": "-", "extra": "?", "foreign": "!"}


@dataclass(frozen=True)
class Difference:
    """What applying did to one definition: created, changed, unchanged, removed, extra or foreign.

    `extra` is in the table and no longer in what was applied: only asked for it is removed.  `foreign` is declared in
    code, and a file or the API has taken it over: it is left as it is.
    """

    name: str
    kind: str
    row: Row
    changes: Mapping[str, tuple[Any, Any]]


def apply_file(
    connection: Connection, file: Path, catalogue: Catalogue, admin: Admin, prune: bool = False
) -> list[Difference]:
    """Make the definitions that files manage what this file says."""
    return _apply(connection, _checked(read_file(file), catalogue, str(file)), catalogue, admin, "file", prune)


def apply_code(connection: Connection, catalogue: Catalogue, admin: Admin, prune: bool = False) -> list[Difference]:
    """Make the definitions that the code manages what it declares; those that a file or the API took over stay."""
    declared = {name: declaration.content for name, declaration in catalogue.definitions.items()}
    contents = _checked(declared, catalogue, "the code")
    return _apply(connection, contents, catalogue, admin, "code", prune)


def _checked(raw: Mapping[str, Mapping[str, Any]], catalogue: Catalogue, source: str) -> dict[str, Content]:
    """All contents, or one error that tells of every definition that is wrong."""
    contents, wrong = {}, []
    for name, fields in raw.items():
        try:
            contents[name] = checked(name, fields, catalogue)
        except DefinitionInvalid as error:
            wrong.append(str(error))
    if wrong:
        raise DefinitionFileInvalid(f"{source}: nothing was applied:\n" + "\n".join(wrong))
    return contents


def _apply(
    connection: Connection,
    contents: Mapping[str, Content],
    catalogue: Catalogue,
    admin: Admin,
    managed_by: str,
    prune: bool,
) -> list[Difference]:
    # By name, so that two that apply at once wait for each other in the same order.
    known = {row["name"]: row for row in list_definitions(connection)}
    return sorted(
        [
            *_kept(connection, contents, known, catalogue, admin, managed_by),
            *_left(connection, contents, known, admin, managed_by, prune),
        ],
        key=lambda difference: difference.name,
    )


def _kept(
    connection: Connection,
    contents: Mapping[str, Content],
    known: Mapping[str, Row],
    catalogue: Catalogue,
    admin: Admin,
    managed_by: str,
) -> Iterator[Difference]:
    for name, content in sorted(contents.items()):
        if managed_by == "code" and name in known and known[name]["managed_by"] != "code":
            yield Difference(name, "foreign", known[name], {})
            continue
        done = put(connection, name, content, catalogue, managed_by, admin)
        changes = {} if done.change is Change.UNCHANGED else differences(done.before, content)
        yield Difference(name, done.change, done.row, changes)


def _left(
    connection: Connection,
    contents: Mapping[str, Content],
    known: Mapping[str, Row],
    admin: Admin,
    managed_by: str,
    prune: bool,
) -> Iterator[Difference]:
    for name, row in known.items():
        if name not in contents and row["managed_by"] == managed_by:
            if prune:
                remove(connection, name, admin)
            yield Difference(name, "removed" if prune else "extra", row, {})


def differences(before: Content | None, after: Content) -> dict[str, tuple[Any, Any]]:
    """Field -> what it was and what it is, for those that differ."""
    was = told(before) if before else {}
    return {name: (was.get(name), value) for name, value in told(after).items() if was.get(name) != value}


def lines(done: Sequence[Difference]) -> list[str]:
    """What applying did, for people: a line for each definition that it did something to, and one for the others."""
    told = [f"{SIGNS[one.kind]} {one.name}: {_sentence(one)}" for one in done if one.kind in SIGNS]
    unchanged = sum(one.kind == "unchanged" for one in done)
    return [*told, f"definitions: {unchanged} unchanged"] if unchanged or not told else told


def _sentence(one: Difference) -> str:
    if one.kind == "created":
        due = one.row["next_run_at"]
        when = f"due next {due.isoformat(sep=' ', timespec='minutes')}" if due else "only run by hand"
        return f"new, {one.row['job_type']}, {when}"
    if one.kind == "changed":
        return ", ".join(f"{name} {_shown(was)} -> {_shown(now)}" for name, (was, now) in one.changes.items())
    if one.kind == "removed":
        return "removed"
    if one.kind == "extra":
        return "is not there any more; --prune removes it"
    return f"is managed by the {one.row['managed_by']} now, and stays as it is"


def _shown(value: object) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
