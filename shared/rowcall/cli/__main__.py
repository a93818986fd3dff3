"""Entry point of `rowcall` and `python -m rowcall.cli`; if an extra's packages are missing, it names the extra."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run a command; if it fails because an extra is missing, say which one."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # While modules are imported, and at the interpreter's end, Ctrl-C ends the process without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rowcall.cli import extras

    try:
        # Imported here, because without extras click is not installed.
        from rowcall.cli import main as front_door

        front_door.main()
    except ModuleNotFoundError as error:
        if not extras.is_missing(error):
            raise
        sys.exit(extras.needs(sys.argv[1:]))


if __name__ == "__main__":
    main()
