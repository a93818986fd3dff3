"""Generated files: list those that handlers have written, and open one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import BinaryIO

from rowcall.base.database import LARGEST_ID, Connection, Row, fetch_one
from rowcall.base.errors import EffectNotFound, FileChanged, FileMissing, GatewayError
from rowcall.base.files import Files
from rowcall.effects.kinds import table_of
from rowcall.effects.lists import Page, listed, page_of_effects
from rowcall.queue.views.pages import Order

KIND = "generated_files"

WRITTEN = ("applied",)

GET_FILE = f"{listed(table_of(KIND))} WHERE id = %(id)s AND state = 'applied'"

# How much of a file is in memory at a time.
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Opened:
    """A file to read: its name without folders, its size in bytes, and the open file."""

    name: str
    size: int
    file: BinaryIO


def page_of_files(
    connection: Connection,
    limit: int = 50,
    run_id: int | None = None,
    cursor: str | None = None,
    order: Order = Order.DESC,
) -> Page:
    """Return a page of the files that were written; `path` is null if it was erased."""
    page = page_of_effects(connection, KIND, WRITTEN, limit, run_id, cursor, order=order)
    return Page([_file(effect) for effect in page.effects], page.next)


def get_file(connection: Connection, file_id: int) -> Row:
    """Return one file, or raise EffectNotFound."""
    effect = fetch_one(connection, GET_FILE, {"id": file_id}) if 0 < file_id <= LARGEST_ID else None
    if effect is None:
        raise EffectNotFound(KIND, file_id)
    return _file(effect)


def open_file(file: Row, folder: Path) -> Opened:
    """Open a file in the folder for generated files; refuse one that is not as its handler wrote it."""
    if file["path"] is None:
        raise FileMissing("the path of this file was erased, or its handler did not record it")
    try:
        opened = Files(folder).open(file["path"])
    except GatewayError as error:
        raise FileMissing(
            f"{error}: it was moved or deleted, or ROWCALL_FILES is not the folder that the workers use"
        ) from error
    size = os.fstat(opened.fileno()).st_size
    if file["size_bytes"] not in (None, size) or file["sha256"] not in (None, _digest(opened)):
        opened.close()
        raise FileChanged(f"{file['path']!r} is not as its handler wrote it: it was replaced or changed later")
    return Opened(file["path"].rpartition("/")[2], size, opened)


def _file(effect: Row) -> Row:
    details = effect["details"]
    known = {name: details.get(name) for name in ("key", "path", "size_bytes", "sha256")}
    about = {"type": details["type"], "date": date.fromisoformat(details["date"])}
    return {"id": effect["id"], **about, **known, "run_id": effect["run_id"], "written_at": effect["applied_at"]}


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := file.read(PIECE_BYTES):
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()
