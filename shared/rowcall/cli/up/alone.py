"""At most one `rowcall up` in a ROWCALL_HOME: two would overwrite each other's key, demo and logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rowcall.base.errors import RowcallError
from rowcall.local_postgres.home import make_home
from rowcall.local_postgres.locks import LockBusy, exclusive


@contextmanager
def alone(home: Path, pid: int) -> Iterator[None]:
    """Refuse to continue if another `up` is running; otherwise keep others out until the end of the block."""
    file = _file(home)
    with ExitStack() as stack:
        try:
            make_home(home)
            stack.enter_context(exclusive(file, patience=0))
            file.write_text(f"process {pid}")
        except LockBusy:
            raise RowcallError(_running(home)) from None
        except OSError:
            pass  # the next step that needs this folder says better what is wrong with it
        yield


def note_api(home: Path, url: str) -> None:
    """Note where the API is, so that the refusal of a second `up` can name it."""
    with suppress(OSError), _file(home).open("a") as file:
        file.write(f", API {url}")


def _running(home: Path) -> str:
    noted = _file(home).read_text()
    pid = noted.partition(",")[0].removeprefix("process ")
    return (
        f"`rowcall up` is already running in {home.absolute()} ({noted}): use that one, or end it with Ctrl-C in its"
        f" terminal or `kill {pid}`; with another ROWCALL_HOME, a second one can run alongside it"
    )


def _file(home: Path) -> Path:
    return home / "up.lock"
