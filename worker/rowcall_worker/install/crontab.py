"""The line of a crontab that starts `rowcall worker once` each minute."""

from __future__ import annotations

import re

from rowcall.base.errors import RowcallError
from rowcall_worker.install.installation import UNPRINTABLE, Installation, about_secrets, refuse
from rowcall_worker.install.quoting import cron_word

# Debian's cron refuses a longer command; cronie takes more.
CRON_COMMAND_BYTES = 998

LINE_BREAK = re.compile(r"\n")

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


def crontab_line(installation: Installation) -> str:
    """One line for `crontab -e`, below comments that say how it gets there."""
    texts = {**installation.values, **installation.paths}
    refuse(texts, UNPRINTABLE, "holds what no crontab can hold: control characters, or bytes that are no UTF-8")
    refuse(texts, LINE_BREAK, "holds a line break, and a crontab has no way to write one")
    assigned = " ".join(f"{name}={cron_word(value)}" for name, value in installation.variables.items())
    # The file comes after what is printed, as in systemd: a setting in the file has the last word.
    steps = ["set -a", assigned]
    if installation.environment_file:
        steps.append(f". {cron_word(installation.environment_file)}")
    if installation.folder:
        steps.append(f"cd {cron_word(installation.folder)}")
    steps.append("exec " + " ".join(map(cron_word, installation.command)))
    # Were there no logger, a worker that writes into a closed pipe would fail; so somebody always reads.
    command = f"{{ {' && '.join(steps)}; }} 2>&1 | {{ logger -t rowcall || cat; }}"
    if len(command.encode()) > CRON_COMMAND_BYTES:
        raise RowcallError(
            f"the command would have {len(command.encode())} characters, and cron takes {CRON_COMMAND_BYTES}: write"
            f" some of {', '.join(installation.settings) or 'the settings'} into an environment file, unset them here"
            " and print again with --environment-file; or take --print-systemd"
        )
    secrets = about_secrets(installation, owner=installation.user)
    return CRONTAB.format(version=installation.version, secrets=secrets, user=installation.user, command=command)
