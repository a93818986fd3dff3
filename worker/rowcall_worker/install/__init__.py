"""Configuration that lets cron, systemd or Kubernetes start the worker of this installation."""

# The default file for secrets.
ENVIRONMENT_FILE = "/etc/rowcall.env"
