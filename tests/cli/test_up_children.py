"""The processes of `rowcall up`: a signal at any moment leaves them stoppable."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from types import FrameType
from typing import Any

from rowcall.cli.up.children import Child, stop_children
from rowcall.cli.up.stop import Stop


def check_until(child: Child, line: int) -> bool:
    """Check the child, with Stop raised before this line of Python; return whether there was such a line."""
    left = line

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            raise Stop
        return trace

    sys.settrace(trace)
    try:
        child.check()
    except Stop:
        return True
    finally:
        sys.settrace(None)
    return False


def test_a_signal_at_any_line_of_a_check_does_not_keep_the_children_from_being_stopped() -> None:
    for line in count(1):
        with subprocess.Popen(["/bin/sleep", "600"]) as process:
            child = Child("rowcall worker run", process, "")
            interrupted = check_until(child, line)
            stop_children([child])
        if not interrupted:
            break
    assert line > 1
