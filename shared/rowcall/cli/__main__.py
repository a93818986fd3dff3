"""Where `rowcall` and `python -m rowcall.cli` begin; without the packages of an extra they say which one to install."""

from __future__ import annotations

import sys

from rowcall.cli import extras


def main() -> None:
    """Run a command."""
    try:
        # The core alone has no click, so the front door is loaded only here.
        from rowcall.cli import main as front_door

        front_door.main()
    except ModuleNotFoundError as error:
        if not extras.is_missing(error):
            raise
        sys.exit(extras.needs(sys.argv[1:]))


if __name__ == "__main__":
    main()
