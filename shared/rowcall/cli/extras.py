"""The extras of the distribution: which one a command needs, and the sentence when it is not installed."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Every other command needs `cli`, which all of these bring with them.
EXTRAS = {"api": "api", "demo": "example", "up": "all", "worker": "worker"}

# What Rowcall's own code imports and the core does not install.  Any other module that is missing belongs to the team's
# package, and its traceback says where.
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
        "ruamel",
        "webargs",
        "werkzeug",
    }
)


def is_missing(error: ModuleNotFoundError) -> bool:
    """Whether an extra would bring this module."""
    return (error.name or "").partition(".")[0] in PACKAGES


def needs(words: Sequence[str]) -> str:
    """The extra that a command line needs; the program's name is left out."""
    extra = EXTRAS.get(words[0] if words else "", "cli")
    return f"{' '.join(['rowcall', *_command(words)])} needs the {extra} extra: pip install 'rowcall[{extra}]'"


def _command(words: Sequence[str]) -> Sequence[str]:
    """The command and its subcommand."""
    named = [bool(re.fullmatch("[a-z][a-z-]*", word)) for word in words[:2]]
    return words[: named.index(False) if False in named else 2]
