"""The extras of the distribution: which one a command needs, and the error if it is not installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec

# All other commands need `cli`, which each of these extras includes.
EXTRAS = {"api": "api", "demo": "example", "up": "all", "worker": "worker"}

# What each command does, so that the list of commands imports none of them; a test compares them.
ABOUT = {
    "up": "Start PostgreSQL, the API and a worker on this machine, and show a run succeed.",
    "new": "Write a small app into the new folder NAME: a job type, its handler, a schedule and a test.",
    "migrate": "Migrate the database to this version's schema.",
    "types": "List the job types of ROWCALL_APP and of Rowcall itself, with the fields of their payloads.",
    "enqueue": "Enqueue a run of JOB_TYPE with PAYLOAD, a JSON object.",
    "worker": "Perform due runs.",
    "api": "Serve the HTTP API until SIGTERM or Ctrl-C, or until the terminal closes.",
    "runs": "Show and change runs.",
    "failures": "List the errors that made attempts fail in the last 7 days, the most frequent in the last hour first.",
    "operations": "List, stop and continue operations, which change many runs; `rowcall runs retry --status dead` "
    "starts one.",
    "definitions": "Show and change definitions: which job types run, and when.",
    "effects": "Show the external side effects of runs, and resolve those with an unknown outcome.",
    "queues": "List, pause, resume and limit queues.",
    "workers": "List workers, the newest first, and the runs that each is performing.",
    "alerts": "List incidents, and send a test alert.",
    "keys": "Create, list, rotate and revoke API keys.",
    "audit": "List the newest matching changes by operators.",
    "webhook-secret": "Print the secret that the receiver at URL uses to verify webhooks.",
    "prune": "Prune old runs and their expired keys now, as the definitions prune_runs and expire_keys do each night.",
    "archive": "List, export and drop the months of the archive table.",
    "erase": "Erase the content of finished runs, for a person who has asked for their data to be deleted.",
    "doctor": "Show the settings that are set, and look for problems.",
    "completion": "Print the script that lets a shell complete commands and options.",
    "demo": "Add the rows of a small SaaS, to try the example's jobs on.",
}

# Modules that Rowcall imports but installs only with extras.  Any other missing module is imported by the app, and
# causes a traceback.
PACKAGES = frozenset(
    {
        "PIL",
        "alembic",
        "apispec",
        "click",
        "cronsim",
        "flask",
        "flask_smorest",
        "flask_swagger_ui",
        "fontTools",
        "fpdf",
        "gunicorn",
        "jinja2",
        "prometheus_client",
        "pyarrow",
        "rich",
        "ruamel",
        "webargs",
        "werkzeug",
    }
)

# Those of PACKAGES that `rowcall api` imports; `up` looks for them too, because it starts the API.
API = (
    "apispec",
    "cronsim",
    "flask",
    "flask_smorest",
    "flask_swagger_ui",
    "gunicorn",
    "jinja2",
    "prometheus_client",
    "webargs",
    "werkzeug",
)
# Those of PACKAGES that each command imports; the list of commands only looks for them, because importing them
# takes a second.
NEEDED = {"api": API, "migrate": ("alembic", "cronsim"), "up": ("cronsim",), "worker": ("cronsim",)}


def is_missing(error: ModuleNotFoundError) -> bool:
    """Return whether the missing module belongs to an extra."""
    return (error.name or "").partition(".")[0] in PACKAGES


def outlined(name: str) -> str | None:
    """Say what a command does without importing it; return None for one that an app adds."""
    if name not in ABOUT:
        return None
    return ABOUT[name] if all(map(find_spec, NEEDED.get(name, ()))) else described(name)


def described(name: str) -> str:
    """Say what a command does, and which extra it needs."""
    return f"{ABOUT.get(name, '')} (needs the {EXTRAS.get(name, 'cli')} extra)".strip()


def needs(words: Sequence[str]) -> str:
    """Say which extra a command needs, given its arguments without the program's name."""
    extra = EXTRAS.get(words[0] if words else "", "cli")
    return f"{' '.join(['rowcall', *_command(words)])} needs the {extra} extra: pip install 'rowcall[{extra}]'"


def _command(words: Sequence[str]) -> Sequence[str]:
    """Return the command and its subcommand."""
    named = [bool(re.fullmatch("[a-z][a-z-]*", word)) for word in words[:2]]
    return words[: named.index(False) if False in named else 2]
