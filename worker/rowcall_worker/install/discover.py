"""Discovers what `rowcall worker once` needs in order to run under cron as it does here."""

from __future__ import annotations

import math
import os
import shutil
import site
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rowcall import __version__
from rowcall.base import settings
from rowcall.base.child_processes import own_command
from rowcall.base.errors import JobTypeUnknown, RowcallError
from rowcall.base.settings import Settings
from rowcall.job_types import catalogue
from rowcall.local_postgres.account import user_name
from rowcall_worker.install import ENVIRONMENT_FILE
from rowcall_worker.install.installation import Installation

# Cron's default PATH.
CRON_PATH = ("/usr/bin", "/bin")


def discover(
    chosen: Settings,
    options: Mapping[str, str | float | None],
    types: Sequence[str] | None,
    environment_file: str | None,
    image: str | None,
) -> Installation:
    """Describe this installation's `rowcall worker once` with these options; refuse an unknown app or job type."""
    if not math.isfinite(chosen.grace):
        raise RowcallError(
            f"--grace is {chosen.grace}, but must be a finite number of seconds, so that the worker stops"
        )
    known = catalogue()
    for name in types or ():
        if name not in known:
            raise JobTypeUnknown(name, sorted(known))
    secrets = _secrets()
    file = environment_file or (ENVIRONMENT_FILE if secrets else None)
    return Installation(
        program=_program(),
        arguments=["worker", "once", *_words(options)],
        settings=_settings(chosen),
        places=_places(chosen),
        folder=_folder(chosen.app) if chosen.app else None,
        secrets=secrets,
        environment_file=str(Path(file).expanduser().absolute()) if file else None,
        user=user_name(os.geteuid()),
        version=__version__,
        image=image or f"rowcall:{__version__}",
        grace=chosen.grace,
        local_server=chosen.database_url is None,
    )


def _program() -> list[str]:
    """The `rowcall` program next to the current interpreter, or the interpreter itself."""
    beside = Path(sys.executable).absolute().with_name("rowcall")
    return [str(beside)] if os.access(beside, os.X_OK) else own_command()


def _words(options: Mapping[str, str | float | None]) -> list[str]:
    """Return the given options as command-line arguments."""
    words: list[str] = []
    for name, value in options.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", f"{value:.15g}" if isinstance(value, float) else str(value)]
    return words


def _settings(chosen: Settings) -> dict[str, str]:
    """The settings in the environment that are neither secrets nor folders, unchanged."""
    return {
        setting.variable: os.environ[setting.variable].strip()
        for name, setting in settings.all_settings().items()
        if settings.source(name) == "environment"
        and getattr(chosen, name) != setting.default
        and not setting.secret
        and not isinstance(getattr(chosen, name), Path)
    }


def _places(chosen: Settings) -> dict[str, str]:
    """Return the variables with absolute paths: folders, and the search paths of modules and programs."""
    values = {setting.variable: getattr(chosen, name) for name, setting in settings.all_settings().items()}
    found = {name: str(value.absolute()) for name, value in values.items() if isinstance(value, Path)}
    for name, setting in settings.all_settings().items():
        if settings.source(name) == "file":
            found[setting.file_variable] = str(Path(os.environ[setting.file_variable].strip()).absolute())
    modules = os.environ.get("PYTHONPATH")
    if modules:
        found["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in modules.split(os.pathsep))
    if chosen.database_url is None and chosen.postgres != "wheel":
        found |= _way_to_postgresql()
    return found


def _way_to_postgresql() -> dict[str, str]:
    """The PATH, if the programs of the local server cannot be found without it."""
    programs = [shutil.which("postgres"), shutil.which("pg_config")]
    folders = [str(Path(program).absolute().parent) for program in programs if program]
    return {"PATH": os.pathsep.join(dict.fromkeys([*folders, *CRON_PATH]))} if {*folders} - {*CRON_PATH} else {}


def _folder(app: str) -> str | None:
    """Return the folder that contains the app's package; None if the package is installed."""
    package = sys.modules[app.partition(".")[0]]
    folder = str(Path(package.__path__[0]).absolute().parent)
    return None if folder in [*site.getsitepackages(), site.getusersitepackages()] else folder


def _secrets() -> list[str]:
    """The names of the secrets that are set, and of the variables that libpq reads besides DATABASE_URL."""
    known = settings.all_settings()
    ours = [spec.variable for name, spec in known.items() if spec.secret and settings.source(name) == "environment"]
    # PGPASSWORD, PGSSLROOTCERT and others belong to the URL; PGDATA belongs to the server, and libpq does not read it.
    libpq = [name for name in sorted(os.environ) if name.startswith("PG") and name != "PGDATA" and os.environ[name]]
    return ours + (libpq if settings.source("database_url") != "default" else [])
