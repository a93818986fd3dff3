"""What `up` shows at work: the example, unless the environment names an app; and the demo of an app that has one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from rowcall.base.database import PgConnection, transaction
from rowcall.base.settings import Settings
from rowcall.job_types.catalogue import optional_app_module

# The app of `up` where the environment names none, and what the extra `example` brings for it.
EXAMPLE = "rowcall_example"
EXAMPLE_NEEDS = ("fpdf", "jinja2")


class Demo(Protocol):
    """What `prepare(connection, folder)` of an app's module `demo` returns."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Settings of the worker and of the command that point to the stand-in for external services."""

    @property
    def command(self) -> Sequence[str]:
        """The command of `rowcall` that stands in for the outside."""

    @property
    def port(self) -> int:
        """Its port on loopback."""

    def ask(self, connection: PgConnection, program: str, mails: Path, files: Path) -> list[str]:
        """Enqueue the demo's runs, and say where to see what they do."""


def choose_app() -> bool:
    """Let this process and its children have the example as their app, if it is installed and no app is named."""
    if os.environ.get("ROWCALL_APP", "").strip() or not all(find_spec(name) for name in (EXAMPLE, *EXAMPLE_NEEDS)):
        return False
    os.environ["ROWCALL_APP"] = EXAMPLE
    return True


def prepared(settings: Settings, url: str) -> Demo | None:
    """The demo of the app, if it has one.

    All that it does stays on this machine.  Where the environment names a database, a mail server or a payment
    provider, there is none: what a team has set is not for trying things on.
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


def asked(settings: Settings, url: str, demo: Demo) -> list[str]:
    """Enqueue the demo's runs: the lines that say where to look."""
    with transaction(url) as connection:
        return demo.ask(connection, program(), settings.mail_folder, settings.file_folder)
