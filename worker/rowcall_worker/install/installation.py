"""One installation's `rowcall worker once`: the values that crontab, units and manifest are printed from.

Nothing is looked up and nothing is installed here.  Secrets are not among the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What a stopping worker gets beyond its grace, to release what still runs: it may have to wait for two answers of a
# silent database, ten seconds each.
SECONDS_TO_RELEASE = 30


@dataclass(frozen=True)
class Installation:
    """`rowcall worker once` as one installation starts it."""

    program: Sequence[str]
    arguments: Sequence[str]
    settings: Mapping[str, str]
    """Variables that hold on any machine."""
    places: Mapping[str, str]
    """Variables that hold on this machine only: folders, and where programs and modules are looked for."""
    folder: str | None
    """Where the app's package is found, unless it is installed."""
    secrets: Sequence[str]
    """The names of the secret variables that are set."""
    environment_file: str | None
    """The file for the secrets; None: there are none to read."""
    user: str
    version: str
    image: str
    grace: float
    local_server: bool
    """No DATABASE_URL is set, so the local server is used."""

    @property
    def command(self) -> list[str]:
        """The whole command line on this machine."""
        return [*self.program, *self.arguments]

    @property
    def variables(self) -> dict[str, str]:
        """All variables of a worker on this machine, except the secret ones."""
        return {**self.places, **self.settings}

    @property
    def stopping_seconds(self) -> int:
        """How long a worker may take to stop."""
        return math.ceil(self.grace) + SECONDS_TO_RELEASE

    @property
    def paths(self) -> dict[str, str]:
        """The paths that are not in variables, under the names that people know."""
        paths = {
            "the program": self.program[0],
            "the app's folder": self.folder,
            "--environment-file": self.environment_file,
        }
        return {name: path for name, path in paths.items() if path}

    @property
    def values(self) -> dict[str, str]:
        """All other values that are printed."""
        return {**self.variables, "the command line": " ".join(self.arguments), "--image": self.image}
