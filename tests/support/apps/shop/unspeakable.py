"""An error whose message cannot be read."""

from rowcall_worker.attempt.context import Run


class Unspeakable(Exception):
    """Reading its message raises another error."""

    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __repr__ = __str__


def unspeakable(run: Run) -> object:
    """Raise the error."""
    raise Unspeakable
