"""All settings, read once from the environment into one frozen object."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.base.errors import SettingsError
from rowcall.base.parsing import Setting, one_of
from rowcall.base.settings.alerts import AlertSettings
from rowcall.base.settings.declare import setting


@dataclass(frozen=True)
class Settings(AlertSettings):
    """The settings of this process; `doctor` shows where each comes from."""

    log_format: str = setting(
        "ROWCALL_LOG_FORMAT",
        one_of("auto", "json", "text"),
        "auto",
        "Format of log lines: `auto` is text on a terminal and JSON elsewhere.",
    )
    log_level: str = setting(
        "ROWCALL_LOG_LEVEL", one_of("debug", "info", "warning", "error"), "info", "Lowest level that is logged."
    )

    @property
    def mail_folder(self) -> Path:
        """The folder to which emails are written if there is no mail server."""
        return self.home / "mail"

    @property
    def file_folder(self) -> Path:
        """The folder for generated files."""
        return self.files or self.home / "files"

    @property
    def archive_folder(self) -> Path:
        """The folder for the archive of pruned runs."""
        return self.archive or self.home / "archive"

    def __post_init__(self) -> None:
        if self.heartbeat * 3 > self.lease:
            raise SettingsError(
                f"ROWCALL_HEARTBEAT is {self.heartbeat:g} seconds and must be at most a third of ROWCALL_LEASE"
                f" ({self.lease:g} seconds): set it to {self.lease / 3:g} or less"
            )
        for variable, is_set, other, needed in (
            ("ROWCALL_SMTP_URL", self.smtp, "ROWCALL_MAIL_FROM", self.mail_from),
            ("ROWCALL_PAYMENT_URL", self.payment_url, "ROWCALL_PAYMENT_KEY", self.payment_key),
            ("ROWCALL_PAYMENT_KEY", self.payment_key, "ROWCALL_PAYMENT_URL", self.payment_url),
        ):
            if is_set and not needed:
                raise SettingsError(f"{variable} is set, and {other} is not: set it too")


def all_settings() -> dict[str, Setting]:
    """Return the settings by field name, in the order of their declaration."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(Settings)}


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.  One error reports all invalid values; an empty value counts as not set."""
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for name, spec in all_settings().items():
        try:
            text = spec.text(environment)
            if text:
                values[name] = spec.parse(text)
        except SettingsError as error:
            wrong.append(str(error))
        except ValueError as error:
            was = "invalid" if spec.secret else repr(text)
            wrong.append(f"{spec.variable} is {was} and must be {error}")
    if wrong:
        raise SettingsError("; ".join(wrong))
    return Settings(**values)


def source(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return where a field's value came from."""
    spec = all_settings()[name]
    if spec.secret and environment.get(spec.file_variable, "").strip():
        return "file"
    return "environment" if environment.get(spec.variable, "").strip() else "default"
