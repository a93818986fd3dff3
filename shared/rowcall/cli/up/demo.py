"""The app that `up` runs (the example, unless the environment names an app), and the app's demo if it has one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from rowcall.base.database import PgConnection, fetch_all, transaction
from rowcall.base.errors import RowcallError
from rowcall.base.settings import Settings
from rowcall.cli.up.apps_here import refuse_apps_here
from rowcall.job_types.catalogue import load_catalogue, optional_app_module

# The default app of `up`, and the modules that the extra `example` installs for it.
EXAMPLE = "rowcall_example"
EXAMPLE_NEEDS = ("PIL", "fpdf", "jinja2")

# Job types in this database that the example lacks: of definitions, of the workers of the last day, and of the newest
# runs, because reading all runs could take long.
OTHERS = """
SELECT job_type FROM rowcall.job_definitions WHERE job_type <> ALL(%(known)s::text[])
UNION
SELECT job_type FROM rowcall.workers, unnest(job_types) AS job_type WHERE job_type <> ALL(%(known)s::text[])
UNION
SELECT job_type FROM (SELECT job_type FROM rowcall.job_runs ORDER BY id DESC LIMIT 1000) AS newest
WHERE job_type <> ALL(%(known)s::text[])
ORDER BY job_type
"""
NAMED_MOST = 3


class Asked(Protocol):
    """What an app says about the runs of its demo."""

    @property
    def lines(self) -> Sequence[str]:
        """Lines that say where to see the results."""

    @property
    def summary(self) -> str:
        """One short line: what this start has added, or that everything exists already."""

    @property
    def notes(self) -> Mapping[int, str]:
        """Run id -> a sentence that says that the run fails on purpose, and what to do."""


class Demo(Protocol):
    """The return type of `prepare(connection, folder)` in an app's module `demo`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Settings that make the worker and the command use the stand-in for external services."""

    @property
    def command(self) -> Sequence[str]:
        """The `rowcall` command that runs the stand-in for external services."""

    @property
    def port(self) -> int:
        """The stand-in's port on loopback."""

    def ask(self, connection: PgConnection, program: str, mails: Path, files: Path) -> Asked:
        """Enqueue the demo's runs, each only once."""


def is_installed() -> bool:
    """Whether the example can run."""
    return all(find_spec(name) for name in (EXAMPLE, *EXAMPLE_NEEDS))


def choose_app() -> bool:
    """Set the example as the app of this process and its children, if it is installed and no app is named.

    Raise an error in the folder of another app.
    """
    if os.environ.get("ROWCALL_APP", "").strip():
        return False
    has_example = is_installed()
    refuse_apps_here(Path.cwd(), EXAMPLE if has_example else None)
    if not has_example:
        return False
    os.environ["ROWCALL_APP"] = EXAMPLE
    return True


def refuse_other_app(connection: PgConnection, home: Path) -> None:
    """Refuse to run the example in the local database of another app, which would get the example's runs and tables."""
    rows = fetch_all(connection, OTHERS, {"known": list(load_catalogue(EXAMPLE))})
    if rows:
        named = ", ".join(row["job_type"] for row in rows[:NAMED_MOST]) + (", ..." if len(rows) > NAMED_MOST else "")
        raise RowcallError(
            f"the database in {home.absolute()} is used by an app other than the example (its job types: {named}), and"
            " ROWCALL_APP is not set: set ROWCALL_APP to that app's package, or set ROWCALL_HOME to a new folder to see"
            " the example there"
        )


def prepared(settings: Settings, url: str) -> Demo | None:
    """Prepare the app's demo, if it has one.

    The demo stays on this machine.  It does not start if the environment names a database, a mail server or a
    payment provider, because a demo must not use a team's real services.
    """
    if settings.app is None or settings.database_url or settings.smtp or settings.payment_url:
        return None
    prepare = getattr(optional_app_module(settings.app, "demo"), "prepare", None)
    if prepare is None:
        return None
    with transaction(url) as connection:
        demo: Demo | None = prepare(connection, settings.home / "demo")
    return demo


def program() -> str:
    """What a person types to run `rowcall`."""
    return "rowcall" if shutil.which("rowcall") else os.path.relpath(Path(sys.executable).with_name("rowcall"))


def asked(settings: Settings, url: str, demo: Demo) -> Asked:
    """Enqueue the demo's runs."""
    with transaction(url) as connection:
        return demo.ask(connection, program(), settings.mail_folder, settings.file_folder)
