"""The logs of the child processes: files in `log` in ROWCALL_HOME; the view prints their warnings and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from rowcall.local_postgres.home import make_home

# The level of a line in text or JSON.  Any other line belongs to a traceback, or was printed by a handler or Python.
LEVEL = re.compile(r'^(?:\d[\dT:.-]+Z |\{"timestamp": "[^"]+", "level": ")(debug|info|warning|error)\b')
TIME = re.compile(r"^\d[\dT:.-]+Z ")
PADDING = re.compile(r"(?<=\S) {2,}")
RUN_ID = re.compile(r'(?:\brun_id=|"run_id": )(\d+)\b')


@dataclass(frozen=True)
class Line:
    """A line of a log: the child that wrote it, its level, and its text without time and padding."""

    child: str
    level: str
    text: str

    @classmethod
    def of(cls, child: str, level: str, text: str) -> Line:
        """Read a line as it is in the file."""
        return cls(child, level, PADDING.sub(" ", TIME.sub("", text)))


@dataclass
class _File:
    """A log file: the child's handle for writing, ours for reading, and the start of an incomplete line."""

    writes: IO[bytes]
    reads: IO[bytes]
    begun: bytes = b""

    def lines(self, last: bool) -> list[str]:
        """Return the lines that were added; at the end of the log, also one without a line break."""
        *whole, self.begun = (self.begun + self.reads.read()).split(b"\n")
        if last and self.begun:
            whole.append(self.begun)
            self.begun = b""
        return [line.decode(errors="replace") for line in whole]


class Logs:
    """The log files of this start; those of the previous start end in .1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, _File] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Logs:
        make_home(self.folder.parent)
        self.folder.mkdir(exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def file_of(self, child: str) -> IO[bytes]:
        """Return the file to which this child writes; only its owner can read it, because errors may quote payloads."""
        path = self.folder / f"{child}.log"
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        writes = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), "ab")
        self._files[child] = _File(self._stack.enter_context(writes), self._stack.enter_context(path.open("rb")))
        return writes

    def news(self, expected: Collection[int], last: bool = False) -> Iterator[Line]:
        """Yield the lines since the last call, except debug and info, and those about runs that fail as expected."""
        for child, file in self._files.items():
            for text in file.lines(last):
                found = LEVEL.match(text)
                level = found[1] if found else "error"
                run = RUN_ID.search(text)
                if level not in ("debug", "info") and text and not (found and run and int(run[1]) in expected):
                    yield Line.of(child, level, text) if found else Line(child, level, text)
