"""The Kubernetes CronJob that starts `rowcall worker once` each minute."""

from __future__ import annotations

from rowcall.base.errors import RowcallError
from rowcall_worker.install.installation import UNPRINTABLE, Installation, refuse
from rowcall_worker.install.quoting import pod_word, yaml_scalar

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
          # The grace of {grace:g} seconds, and time to release what still runs.
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


def cron_job(installation: Installation) -> str:
    """A CronJob for `kubectl apply`."""
    if installation.local_server:
        raise RowcallError(
            "a pod needs DATABASE_URL, because the local server would begin and end with it: set DATABASE_URL to a"
            " PostgreSQL that pods can reach, such as postgresql://app@postgres:5432/app"
        )
    refuse(
        installation.values,
        UNPRINTABLE,
        "holds what no manifest can hold: control characters, or bytes that are no UTF-8",
    )
    environment = [
        f"\n                - name: {name}\n                  value: {pod_word(value)}"
        for name, value in installation.settings.items()
    ]
    return CRON_JOB.format(
        version=installation.version,
        secrets=", ".join(installation.secrets),
        places=", ".join(installation.places),
        grace=installation.grace,
        stopping_seconds=installation.stopping_seconds,
        image=yaml_scalar(installation.image),
        arguments=", ".join(map(pod_word, installation.arguments)),
        environment="".join(environment) or " []",
    )
