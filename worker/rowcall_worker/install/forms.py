"""Fills the templates that the --print options of `rowcall worker once` print."""

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

# The limit of Debian's cron; cronie accepts more.
CRON_COMMAND_BYTES = 998

# Characters that no text file should contain: control characters, and bytes of a path that are not UTF-8.
UNPRINTABLE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
# systemd strips spaces at the end of a line, and a \ there continues the line.
NO_UNIT_PATH = r"[\n\t]|[ \\]$"

# sh and systemd read NAME='value' lines in the same way.
SECRETS = """\
# Secrets are not printed: they are read from {file}.
# Add these, which are set here, to that file: {names}
# Write each as a line NAME='value', with '"'"' for a ' in a value.  Add other variables that your
# jobs read from the environment in the same way.  Only {owner} may read the file:
#   sudo touch {word} && sudo chown {owner} {word} && sudo chmod 600 {word}
#
"""

KILL_WORKER = """\
# Stop only the worker: it lets its handlers and their child processes finish.
KillMode=mixed"""
# `mixed` would kill the local server when the first worker ends, while others still use it.
KILL_NOTHING_ELSE = """\
# Stop only the worker: the local server that it may have started also serves others, and stops by itself.
KillMode=process"""


def crontab(this: Installation) -> str:
    """One line for `crontab -e`, below comments that say how to install it."""
    _check({**this.values, **this.paths}, "crontab")
    _refuse({**this.values, **this.paths}, r"\n", "contains a line break, which a crontab cannot contain")
    # The file is read after the printed variables, as in systemd, so that the file overrides them.
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
            f"the command would have {len(command.encode())} bytes, but cron accepts {CRON_COMMAND_BYTES}: write"
            f" some of {', '.join(this.settings) or 'the settings'} into an environment file, unset them here"
            " and print again with --environment-file; or use --print-systemd"
        )
    return _filled("crontab", this, secrets=_about_secrets(this, owner=this.user), command=command)


def systemd(this: Installation) -> str:
    """Return a service and the timer that starts it, each below a comment with the name of its file."""
    _check({**this.values, **this.paths}, "unit")
    _refuse(
        this.paths,
        NO_UNIT_PATH,
        "contains a line break or a tab, or ends with a space or \\, and a unit cannot contain such a path",
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
    """Return a CronJob for `kubectl apply`."""
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
    """Return the comment on the file for secrets and how to create it."""
    file = this.environment_file
    if file is None:
        return "# No secret is set here, so no environment file is read.\n#\n"
    return SECRETS.format(file=file, names=", ".join(this.secrets) or "none", owner=owner, word=shlex.quote(file))


def _check(texts: Mapping[str, str], form: str) -> None:
    _refuse(
        texts, UNPRINTABLE, f"contains control characters or bytes that are not UTF-8, which a {form} cannot contain"
    )


def _refuse(texts: Mapping[str, str], wrong: str, reason: str) -> None:
    """Refuse a value that the printed text cannot contain; the error names it."""
    for name, text in texts.items():
        if re.search(wrong, text):
            raise RowcallError(f"{name} is {text!a}, which {reason}")
