"""`python -m rowcall.local_postgres remove`, which `make clean` runs."""

from __future__ import annotations

import sys

from rowcall.base import settings
from rowcall.base.errors import RowcallError
from rowcall.local_postgres.server import remove


def main(arguments: list[str]) -> int:
    """Delete the local server in ROWCALL_HOME; print only errors."""
    if arguments != ["remove"]:
        sys.stderr.write("usage: python -m rowcall.local_postgres remove\n")
        return 2
    try:
        remove(settings.read().home)
    except RowcallError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
