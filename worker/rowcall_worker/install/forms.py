"""What each --print option of `rowcall worker once` prints: a template of this folder, filled for one installation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from importlib.resources import files

from rowcall.base.errors import RowcallError
from rowcall_worker.install.installation import Installation
from rowcall_worker.install.quoting import (
    cron_word,
    pod_word,
    unit_command,
    unit_path,
    unit_pattern,
    unit_word,
    yaml_scalar,
)

# Debian's cron refuses a longer command; cronie takes more.
CRON_COMMAND_BYTES = 998

# Characters that no text file should contain: control characters, and bytes of a path that are not UTF-8.
UNPRINTABLE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
# In a unit a path ends with its line, less what is blank there; and a \ would continue the line.
NO_UNIT_PATH = r"[\n\t]|[ \\]$"

# sh and systemd read such lines alike.
SECRETS = """\
# Secrets are not printed: they are read from {file}.
# Set here, and to be written there: {names}
# One line each, NAME='value', where a ' in a value is written '"'"'; and in the same way whatever else your jobs read
# from the environment.  Nobody but {owner} may read the file:
#   sudo touch {word} && sudo chown {owner} {word} && sudo chmod 600 {word}
#
"""

KILL_WORKER = """\
# Only the worker is told to stop; it lets its handlers, and the processes that they have, finish.
KillMode=mixed"""
# `mixed` would kill the server with the first worker that ends, while all others use it.
KILL_NOTHING_ELSE = """\
# The local server, which the first worker starts, serves others too and ends by itself.
KillMode=process"""


def crontab(this: Installation) -> str:
    """One line for `crontab -e`, below comments that say how to install it."""
    _check({**this.values, **this.paths}, "crontab")
    _refuse({**this.values, **this.paths}, r"\n", "holds a line break, and a crontab has no way to write one")
    # The file comes after what is printed, as in systemd: a setting in the file has the last word.
    steps = ["set -a", " ".join(f"{name}={cron_word(value)}" for name, value in this.variables.items())]
    if this.environment_file:
        steps.append(f". {cron_word(this.environment_file)}")
    if this.folder:
        steps.append(f"cd {cron_word(this.folder)}")
    steps.append("exec " + " ".join(map(cron_word, this.command)))
    # Without a logger, a worker would fail when it writes to a closed pipe, so something always reads.
    command = f"{{ {' && '.join(steps)}; }} 2>&1 | {{ logger -t rowcall || cat; }}"
    if len(command.encode()) > CRON_COMMAND_BYTES:
        raise RowcallError(
            f"the command would have {len(command.encode())} characters, and cron takes {CRON_COMMAND_BYTES}: write"
            f" some of {', '.join(this.settings) or 'the settings'} into an environment file, unset them here"
            " and print again with --environment-file; or take --print-systemd"
        )
    return _filled("crontab", this, secrets=_about_secrets(this, owner=this.user), command=command)


def systemd(this: Installation) -> str:
    """A service and the timer that starts it, each below a comment with the name of its file."""
    _check({**this.values, **this.paths}, "unit")
    _refuse(
        this.paths, NO_UNIT_PATH, "has a line break or a tab in it, or a space or \\ at its end: no unit can name it"
    )
    environment = [f"Environment={unit_word(f'{name}={value}')}" for name, value in this.variables.items()]
    if this.environment_file:
        environment.append(f"EnvironmentFile={unit_pattern(this.environment_file)}")
    if this.folder:
        environment.append(f"WorkingDirectory={unit_path(this.folder)}")
    return _filled(
        "systemd",
        this,
        secrets=_about_secrets(this, owner="root"),
        environment="\n".join(environment),
        command=unit_command(this.command),
        kill_mode=KILL_NOTHING_ELSE if this.local_server else KILL_WORKER,
    )


def kubernetes(this: Installation) -> str:
    """A CronJob for `kubectl apply`."""
    if this.local_server:
        raise RowcallError(
            "a pod needs DATABASE_URL, because a local server would start and stop with the pod: set DATABASE_URL to a"
            " PostgreSQL that pods can reach, such as postgresql://app@postgres:5432/app"
        )
    _check(this.values, "manifest")
    environment = [
        f"\n                - name: {name}\n                  value: {pod_word(value)}"
        for name, value in this.settings.items()
    ]
    return _filled(
        "kubernetes",
        this,
        secrets=", ".join(this.secrets),
        places=", ".join(this.places),
        image=yaml_scalar(this.image),
        arguments=", ".join(map(pod_word, this.arguments)),
        environment="".join(environment) or " []",
    )


FORMS: Mapping[str, Callable[[Installation], str]] = {"crontab": crontab, "systemd": systemd, "k8s": kubernetes}


def _filled(form: str, this: Installation, **more: str) -> str:
    return files(__package__).joinpath(f"{form}.template").read_text("utf-8").format(this=this, **more)


def _about_secrets(this: Installation, owner: str) -> str:
    """The comment that says where secrets are read from and how to create the file."""
    file = this.environment_file
    if file is None:
        return "# No secret is set here, so no environment file is read.\n#\n"
    return SECRETS.format(file=file, names=", ".join(this.secrets) or "none", owner=owner, word=shlex.quote(file))


def _check(texts: Mapping[str, str], form: str) -> None:
    _refuse(texts, UNPRINTABLE, f"holds what no {form} can hold: control characters, or bytes that are not UTF-8")


def _refuse(texts: Mapping[str, str], wrong: str, reason: str) -> None:
    """Refuse a value that the printed text cannot contain, with its name."""
    for name, text in texts.items():
        if re.search(wrong, text):
            raise RowcallError(f"{name} is {text!a}, which {reason}")
