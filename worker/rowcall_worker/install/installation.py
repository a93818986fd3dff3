"""The values that are printed into a crontab, a systemd unit or a Kubernetes manifest; they contain no secrets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The time beyond its grace in which a stopping worker releases runs: it may wait for two results from an unresponsive
# database, ten seconds each.
SECONDS_TO_RELEASE = 30


@dataclass(frozen=True)
class Installation:
    """How one installation starts `rowcall worker once`."""

    program: Sequence[str]
    arguments: Sequence[str]
    settings: Mapping[str, str]
    """Variables that are valid on any machine."""
    places: Mapping[str, str]
    """Variables that are valid on this machine only: folders, and search paths of programs and modules."""
    folder: str | None
    """The folder that contains the app's package; None if the package is installed."""
    secrets: Sequence[str]
    """The names of the secret variables that are set."""
    environment_file: str | None
    """The file for the secrets; None if no secrets are set, and no file was named."""
    user: str
    version: str
    image: str
    grace: float
    local_server: bool
    """Whether the local server is used, because DATABASE_URL is not set."""

    @property
    def command(self) -> list[str]:
        """The command line on this machine."""
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
