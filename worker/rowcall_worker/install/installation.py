"""One installation's `rowcall worker once`: the values that crontab, units and manifest are printed from.

Values in, text out: nothing is looked up and nothing is installed here.  Secrets are not among the values.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.errors import RowcallError

# What a stopping worker gets beyond its grace, to release what still runs: it may have to wait for two answers of a
# silent database, ten seconds each.
SECONDS_TO_RELEASE = 30

# What no text file should hold: control characters, and bytes of a path that are no UTF-8.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


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
        """All variables that a worker on this machine is given, but the secret ones."""
        return {**self.places, **self.settings}

    @property
    def stopping_seconds(self) -> int:
        """How long a worker may take to stop."""
        return math.ceil(self.grace) + SECONDS_TO_RELEASE

    @property
    def paths(self) -> dict[str, str]:
        """The paths besides those in variables, under the names that a person knows them by."""
        paths = {
            "the program": self.program[0],
            "the app's folder": self.folder,
            "--environment-file": self.environment_file,
        }
        return {name: path for name, path in paths.items() if path}

    @property
    def values(self) -> dict[str, str]:
        """Everything else that is printed, in the same way."""
        return {**self.variables, "the command line": " ".join(self.arguments), "--image": self.image}


NO_SECRETS = """\
# No secret is set here, so no environment file is read.
#
"""
# sh and systemd read such lines alike.
SECRETS = """\
# Secrets are not printed: they are read from {file}.
# Set here, and to be written there: {names}
# One line each, NAME='value', where a ' in a value is written '"'"'; and in the same way whatever else your jobs read
# from the environment.  Nobody but {owner} may read the file:
#   sudo touch {word} && sudo chown {owner} {word} && sudo chmod 600 {word}
#
"""


def about_secrets(installation: Installation, owner: str) -> str:
    """The comment that says where secrets are read from, and how their file is made."""
    if installation.environment_file is None:
        return NO_SECRETS
    file = installation.environment_file
    return SECRETS.format(
        file=file, names=", ".join(installation.secrets) or "none", owner=owner, word=shlex.quote(file)
    )


def refuse(texts: Mapping[str, str], wrong: re.Pattern[str], reason: str) -> None:
    """Refuse a value, under its name, that the text to print cannot hold."""
    for name, text in texts.items():
        if wrong.search(text):
            raise RowcallError(f"{name} is {text!a}, which {reason}")
