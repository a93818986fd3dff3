"""The systemd service and timer that start `rowcall worker once` each minute."""

from __future__ import annotations

import re

from rowcall_worker.install.installation import UNPRINTABLE, Installation, about_secrets, refuse
from rowcall_worker.install.quoting import unit_command, unit_path, unit_pattern, unit_word

# In a unit a path ends with its line, less what is blank there; and a \ would continue the line.
NO_UNIT_PATH = re.compile(r"[\n\t]|[ \\]$")

# awk writes each unit into the file that the comment above it names.
UNITS = r"""# Wakes Rowcall each minute: printed by rowcall {version} for what is installed here now.
#
{secrets}# To install both units, add the first line to the command that printed this, and run the second:
#   | sudo awk '/^# \/etc\/systemd\// {{file = $2}} file {{print > file}}'
#   sudo systemctl daemon-reload && sudo systemctl enable --now rowcall.timer
# `systemctl list-timers rowcall.timer` tells when it wakes, `journalctl -t rowcall` what was done.

# /etc/systemd/system/rowcall.service
# The timer does not start this again while it runs.  After --max-time no more is claimed, and what runs is finished: so
# one long job delays the schedules, and every run that is due meanwhile.  For jobs that take minutes, let
# `rowcall worker run` stay as a service of its own.
[Unit]
Description=Rowcall: do what is due

[Service]
Type=oneshot
User={user}
{environment}
ExecStart={command}
{kill_mode}
# The grace of {grace:g} seconds, and time to release what still runs.
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
# `mixed` would kill the server with the first worker that ends, while all others use it.
KILL_NOTHING_ELSE = """\
# The local server, which the first worker starts, serves others too and ends by itself.
KillMode=process"""


def systemd_units(installation: Installation) -> str:
    """A service and the timer that starts it, each below a comment with the name of its file."""
    texts = {**installation.values, **installation.paths}
    refuse(texts, UNPRINTABLE, "holds what no unit can hold: control characters, or bytes that are no UTF-8")
    refuse(
        installation.paths,
        NO_UNIT_PATH,
        "has a line break or a tab in it, or a space or \\ at its end: no unit can name it",
    )
    environment = [f"Environment={unit_word(f'{name}={value}')}" for name, value in installation.variables.items()]
    if installation.environment_file:
        environment.append(f"EnvironmentFile={unit_pattern(installation.environment_file)}")
    if installation.folder:
        environment.append(f"WorkingDirectory={unit_path(installation.folder)}")
    return UNITS.format(
        version=installation.version,
        secrets=about_secrets(installation, owner="root"),
        user=installation.user,
        environment="\n".join(environment),
        command=unit_command(installation.command),
        kill_mode=KILL_NOTHING_ELSE if installation.local_server else KILL_WORKER,
        grace=installation.grace,
        stopping_seconds=installation.stopping_seconds,
    )
