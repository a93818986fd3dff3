"""What lets cron, systemd or Kubernetes start this installation's worker, printed for who installs it."""

# Where secrets are looked for on a machine, unless another file is named.
ENVIRONMENT_FILE = "/etc/rowcall.env"
