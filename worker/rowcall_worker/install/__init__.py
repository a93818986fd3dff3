"""Prints configurations with which cron, systemd or Kubernetes start this installation's worker."""

# The default file for secrets.
ENVIRONMENT_FILE = "/etc/rowcall.env"
