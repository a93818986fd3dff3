"""What wakes `rowcall worker once` each minute: a line of a crontab, two systemd units, or a Kubernetes CronJob.

Values in, text out: nothing is looked up and nothing is installed here.  Secrets are not among the values.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rowcall.base.errors import RowcallError
from rowcall_worker.install.quoting import (
    cron_word,
    pod_word,
    unit_command,
    unit_path,
    unit_pattern,
    unit_word,
    yaml_scalar,
)

# After its grace a stopping worker gives back what still runs, for which it gets this long.
SECONDS_TO_GIVE_BACK = 15

# Debian's cron refuses a longer command; cronie takes more.
CRON_COMMAND_BYTES = 998

# What no text file should hold: control characters, and bytes of a path that are no UTF-8.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
LINE_BREAK = re.compile(r"\n")
# In a unit a path ends with its line, less what is blank there; and a \ would continue the line.
NO_UNIT_PATH = re.compile(r"[\n\t]|[ \\]$")


@dataclass(frozen=True)
class Waking:
    """`rowcall worker once` as one installation starts it."""

    program: Sequence[str]
    arguments: Sequence[str]
    settings: Mapping[str, str]
    """Variables that are as true on another machine."""
    places: Mapping[str, str]
    """Variables that are true on this machine only: folders, and where programs and modules are looked for."""
    folder: str | None
    """Where the app's package is found, unless it is installed."""
    secrets: Sequence[str]
    """The names of the secret variables that are set."""
    environment_file: str | None
    """Where the secrets will stand; None: there are none to read."""
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
        return math.ceil(self.grace) + SECONDS_TO_GIVE_BACK

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


CRONTAB = """\
# Wakes Rowcall each minute: printed by rowcall {version} for what is installed here now.
#
{secrets}\
# To install it, as the user {user}: `crontab -e`, and paste the last line below what is there.
# (`crontab FILE` and `crontab -` would replace all that is there.)
#
# What it says goes to syslog as `rowcall`, because cron would mail it each minute, or lose it where no mail is set up;
# what syslog does not take is left to cron.  Written for SHELL=/bin/sh, which is what cron uses.
* * * * * {command}
"""


def crontab(waking: Waking) -> str:
    """One line for `crontab -e`, below comments that say how it gets there."""
    texts = {**waking.values, **waking.paths}
    _refuse(texts, UNPRINTABLE, "holds what no crontab can hold: control characters, or bytes that are no UTF-8")
    _refuse(texts, LINE_BREAK, "holds a line break, and a crontab has no way to write one")
    assigned = " ".join(f"{name}={cron_word(value)}" for name, value in waking.variables.items())
    # The file comes after what is printed, as in systemd: whoever writes a setting into it has the last word.
    steps = ["set -a", assigned]
    if waking.environment_file:
        steps.append(f". {cron_word(waking.environment_file)}")
    if waking.folder:
        steps.append(f"cd {cron_word(waking.folder)}")
    steps.append("exec " + " ".join(map(cron_word, waking.command)))
    # Were there no logger, a worker that writes into a closed pipe would fail; so somebody always reads.
    command = f"{{ {' && '.join(steps)}; }} 2>&1 | {{ logger -t rowcall || cat; }}"
    if len(command.encode()) > CRON_COMMAND_BYTES:
        raise RowcallError(
            f"the command would have {len(command.encode())} characters, and cron takes {CRON_COMMAND_BYTES}: write"
            f" some of {', '.join(waking.settings) or 'the settings'} into an environment file, unset them here and"
            " print again with --environment-file; or take --print-systemd"
        )
    secrets = _about_the_file(waking, owner=waking.user)
    return CRONTAB.format(version=waking.version, secrets=secrets, user=waking.user, command=command)


# awk writes each unit into the file that the comment above it names.
UNITS = r"""# Wakes Rowcall each minute: printed by rowcall {version} for what is installed here now.
#
{secrets}# To install both units, add the first line to the command that printed this, and run the second:
#   | sudo awk '/^# \/etc\/systemd\// {{file = $2}} file {{print > file}}'
#   sudo systemctl daemon-reload && sudo systemctl enable --now rowcall.timer
# `systemctl list-timers rowcall.timer` tells when it wakes, `journalctl -t rowcall` what was done.

# /etc/systemd/system/rowcall.service
# The timer does not start this again while it runs.  So one long job holds up the schedules, and whatever finds no
# place beside it: print this again with --max-seconds, after which no more is claimed and what still runs gets its
# grace; or, better for jobs that take minutes, let `rowcall worker run` stay as a service of its own.
[Unit]
Description=Rowcall: do what is due

[Service]
Type=oneshot
User={user}
{environment}
ExecStart={command}
{kill_mode}
# The grace of {grace:g} seconds, and time to give back what still runs.
TimeoutStopSec={stopping_seconds}
SyslogIdentifier=rowcall

# /etc/systemd/system/rowcall.timer
[Unit]
Description=Wake Rowcall each minute

[Timer]
OnCalendar=*-*-* *:*:00
# Without it systemd may be a minute late, to wake the processor less often.
AccuracySec=1s

[Install]
WantedBy=timers.target
"""

KILL_WORKER = """\
# Only the worker is told to stop; it lets its handlers, and the processes that they have, finish.
KillMode=mixed"""
# `mixed` would kill the server with the first worker that ends, under the hands of all others.
KILL_NOTHING_ELSE = """\
# The local server, which the first worker starts, serves others too and ends by itself.
KillMode=process"""


def systemd_units(waking: Waking) -> str:
    """A service and the timer that starts it, each below a comment with the name of its file."""
    texts = {**waking.values, **waking.paths}
    _refuse(texts, UNPRINTABLE, "holds what no unit can hold: control characters, or bytes that are no UTF-8")
    _refuse(
        waking.paths, NO_UNIT_PATH, "has a line break or a tab in it, or a space or \\ at its end: no unit can name it"
    )
    environment = [f"Environment={unit_word(f'{name}={value}')}" for name, value in waking.variables.items()]
    if waking.environment_file:
        environment.append(f"EnvironmentFile={unit_pattern(waking.environment_file)}")
    if waking.folder:
        environment.append(f"WorkingDirectory={unit_path(waking.folder)}")
    return UNITS.format(
        version=waking.version,
        secrets=_about_the_file(waking, owner="root"),
        user=waking.user,
        environment="\n".join(environment),
        command=unit_command(waking.command),
        kill_mode=KILL_NOTHING_ELSE if waking.local_server else KILL_WORKER,
        grace=waking.grace,
        stopping_seconds=waking.stopping_seconds,
    )


CRON_JOB = """\
# Wakes Rowcall each minute: printed by rowcall {version} for what is set here now.
#
# Secrets are not printed: they are read from the Secret `rowcall`.
# Set here, and to be written there: {secrets}
# Write them into a file, one line each, NAME=value without quotes, and remove it afterwards:
#   touch rowcall.env && chmod 600 rowcall.env
#   kubectl create secret generic rowcall --from-env-file=rowcall.env
#
# To install it, add to the command that printed this:
#   | kubectl apply -f -
#
# Left out, because they are of this machine: {places}.
# The image has a ROWCALL_HOME of its own, /var/lib/rowcall: mount a volume there, if what jobs write shall stay.
# An image for ROWCALL_APP holds its package in /app, or installed.
apiVersion: batch/v1
kind: CronJob
metadata:
  name: rowcall
spec:
  schedule: "* * * * *"
  # Any number of workers may work at once, since the table decides who does what; with Forbid, one long job would keep
  # everything else waiting.
  concurrencyPolicy: Allow
  # What could not start in time is left to the next minute.  Without this, a cluster that has missed 100 minutes would
  # never start one again.
  startingDeadlineSeconds: 30
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      # The table says what is tried again, and when; the next pod comes in a minute.
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          # The grace of {grace:g} seconds, and time to give back what still runs.
          terminationGracePeriodSeconds: {stopping_seconds}
          containers:
            - name: rowcall
              image: {image}
              args: [{arguments}]
              envFrom:
                - secretRef:
                    name: rowcall
              env:{environment}
              # Yours to say: `resources`, what it may have of memory and processors.
"""


def cron_job(waking: Waking) -> str:
    """A CronJob for `kubectl apply`."""
    if waking.local_server:
        raise RowcallError(
            "a pod needs DATABASE_URL, because the local server would begin and end with it: set DATABASE_URL to a"
            " PostgreSQL that pods can reach, such as postgresql://rowcall@postgres:5432/rowcall"
        )
    _refuse(
        waking.values, UNPRINTABLE, "holds what no manifest can hold: control characters, or bytes that are no UTF-8"
    )
    environment = [
        f"\n                - name: {name}\n                  value: {pod_word(value)}"
        for name, value in waking.settings.items()
    ]
    return CRON_JOB.format(
        version=waking.version,
        secrets=", ".join(waking.secrets),
        places=", ".join(waking.places),
        grace=waking.grace,
        stopping_seconds=waking.stopping_seconds,
        image=yaml_scalar(waking.image),
        arguments=", ".join(map(pod_word, waking.arguments)),
        environment="".join(environment) or " []",
    )


PRINTED: Mapping[str, Callable[[Waking], str]] = {"crontab": crontab, "systemd": systemd_units, "k8s": cron_job}
"""What is printed -> what prints it."""

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


def _about_the_file(waking: Waking, owner: str) -> str:
    if waking.environment_file is None:
        return NO_SECRETS
    file = waking.environment_file
    return SECRETS.format(file=file, names=", ".join(waking.secrets) or "none", owner=owner, word=shlex.quote(file))


def _refuse(texts: Mapping[str, str], wrong: re.Pattern[str], reason: str) -> None:
    for name, text in texts.items():
        if wrong.search(text):
            raise RowcallError(f"{name} is {text!a}, which {reason}")
