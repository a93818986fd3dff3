"""The versions in alembic's folder, and what each one declares besides its steps: `fits` and `indexes`."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import sqlalchemy
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

FOLDER = Path(__file__).parent


def alembic_config(connection: sqlalchemy.Connection | None = None, output: StringIO | None = None) -> Config:
    """Return alembic's settings, which are in code instead of in an alembic.ini."""
    config = Config(output_buffer=output)
    # Alembic reads % in options as interpolation, and a folder's name may contain one.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def scripts() -> ScriptDirectory:
    """Return the folder of the versions."""
    return ScriptDirectory.from_config(alembic_config())


def oldest_first(folder: ScriptDirectory) -> list[Script]:
    """Return all versions, in the order in which they are applied."""
    return list(reversed(list(folder.walk_revisions())))


def revisions(folder: ScriptDirectory) -> list[str]:
    """Return all revisions, the oldest first."""
    return [script.revision for script in oldest_first(folder)]


def between(folder: ScriptDirectory, low: str | None, high: str | None) -> list[Script]:
    """Return the versions after one revision up to another, the oldest first; None is an empty database."""
    return [script for script in oldest_first(folder) if (low or "") < script.revision <= (high or "")]


def fits_at(folder: ScriptDirectory, revision: str) -> str:
    """Return the oldest revision whose code works with a database at this revision: the highest `fits` of its steps."""
    return max(str(script.module.fits) for script in between(folder, None, revision))


def indexes_at(folder: ScriptDirectory, revision: str) -> dict[str, str | None]:
    """Return name -> statement for each index that is built outside the steps; None if it must not exist."""
    wanted: dict[str, str | None] = {}
    for script in oldest_first(folder):
        declared: Mapping[str, str | None] = getattr(script.module, "indexes", {})
        if script.revision <= revision:
            wanted |= declared
        else:
            wanted = {**dict.fromkeys(declared), **wanted}
    return wanted
