"""Declares one setting as a field of the settings' dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any

from rowcall.base.parsing import Parser, Setting


def setting(variable: str, parse: Parser, default: Any, meaning: str, unit: str = "", secret: bool = False) -> Any:
    """Return the dataclass field for this environment variable."""
    spec = Setting(variable, parse, default, meaning, unit, secret)
    return dataclasses.field(default=default, repr=not secret, metadata={"setting": spec})
