"""`python -m shared.embedded remove`: what `make clean` runs."""

from __future__ import annotations

import sys

from shared import settings
from shared.embedded import remove
from shared.errors import RowcallError


def main(arguments: list[str]) -> int:
    """Delete the embedded server of this environment's home; say nothing when that went well."""
    if arguments != ["remove"]:
        sys.stderr.write("usage: python -m shared.embedded remove\n")
        return 2
    try:
        remove(settings.read().home)
    except RowcallError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
