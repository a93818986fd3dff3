"""What each --print option of `rowcall worker once` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rowcall_worker.install.crontab import crontab_line
from rowcall_worker.install.installation import Installation
from rowcall_worker.install.kubernetes import cron_job
from rowcall_worker.install.systemd import systemd_units

FORMS: Mapping[str, Callable[[Installation], str]] = {
    "crontab": crontab_line,
    "systemd": systemd_units,
    "k8s": cron_job,
}
