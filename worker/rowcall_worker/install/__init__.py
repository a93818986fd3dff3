"""Configuration with which cron, systemd or Kubernetes starts the worker of this installation."""

# The default file for secrets.
ENVIRONMENT_FILE = "/etc/rowcall.env"
