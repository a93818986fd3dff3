"""The one thread of each process that reads what requests wait for."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

# How often the thread reads while requests wait: a person notices no delay, and the server no load.
LOOK_SECONDS = 0.5


class Reader(ABC):
    """Something to read while requests wait for it."""

    @property
    @abstractmethod
    def needed(self) -> bool:
        """Whether a request waits for what this reads."""

    @abstractmethod
    def run_once(self) -> None:
        """Read, and tell the requests; an error must not end the thread."""


class Poller:
    """Runs the readers that are needed; reads nothing while none is."""

    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self._woken = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, reader: Reader) -> None:
        """Also run this reader."""
        self._readers.append(reader)

    def wake(self) -> None:
        """Begin to read, because a reader is needed."""
        self._woken.set()
        with self._starting:
            # A forked process does not have its parent's threads.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._woken.wait():
            self._woken.clear()
            while any(reader.needed for reader in self._readers):
                time.sleep(LOOK_SECONDS)  # nothing can wake it earlier: a pooler passes on no notifications
                for reader in self._readers:
                    if reader.needed:
                        reader.run_once()
