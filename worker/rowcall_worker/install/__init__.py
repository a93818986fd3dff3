"""Configuration that lets cron, systemd or Kubernetes start the worker of this installation."""

# Where secrets are looked for on a machine, unless another file is named.
ENVIRONMENT_FILE = "/etc/rowcall.env"
