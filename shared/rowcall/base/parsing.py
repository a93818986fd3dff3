"""Defines settings and their parsers.  Invalid text raises a ValueError whose message says what it must be."""

from __future__ import annotations

import functools
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowcall.base.errors import SettingsError

# libpq's syntax: a quoted value may contain spaces, and a backslash escapes the next character.
_KEYWORD = r"(?P<name>[a-z_]++)\s*+=\s*+(?P<value>'(?:[^'\\]|\\.)*+'|(?:[^\s'\\]|\\.)*+)"
KEYWORD = re.compile(_KEYWORD)
KEYWORDS = re.compile(rf"\s*+(?:{re.sub(r'[?]P<[a-z]+>', '?:', _KEYWORD)}(?:\s++|$))++")

# A connection string must contain at least one of these.
NAMES_A_DATABASE = frozenset({"host", "hostaddr", "port", "dbname", "user", "service"})

Parser = Callable[[str], Any]


@dataclass(frozen=True)
class Setting:
    """One environment variable: its parser, its meaning and its default."""

    variable: str
    parse: Parser
    default: Any
    meaning: str
    unit: str = ""
    secret: bool = False

    def text(self, environment: Mapping[str, str]) -> str:
        """Return the variable's text, or ""; a secret can come from the file that `..._FILE` names."""
        text = environment.get(self.variable, "").strip()
        file = environment.get(self.file_variable, "").strip() if self.secret else ""
        if text and file:
            raise SettingsError(f"{self.variable} and {self.file_variable} are both set: unset one of them")
        try:
            return secret_in(file) if file else text
        except ValueError as error:
            raise SettingsError(f"{self.file_variable} names {file}, which {error}") from None

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the value."""
        return f"{self.variable}_FILE"

    def shown(self, value: Any) -> str:
        """Format the value for output; for a secret, say only that it is set."""
        if value is None or value in ("", ()):
            return "(not set)"
        if self.secret:
            return "(set, not shown)"
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return ", ".join(map(str, value))
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        return f"{value:g} {unit}".strip() if isinstance(value, float) else str(value)


# No real secret is this long.
SECRET_CHARACTERS = 65_536


@functools.cache
def secret_in(file: str) -> str:
    """Return the secret in a file; cached, because every log line is searched for it."""
    try:
        # Reading another kind of file, such as a pipe, may never end.
        if not stat.S_ISREG(Path(file).stat().st_mode):
            raise ValueError("is not a regular file")
        with Path(file).open(encoding="utf-8-sig") as opened:
            text = opened.read(SECRET_CHARACTERS + 1).strip()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    if not text:
        raise ValueError("is empty")
    if len(text) > SECRET_CHARACTERS:
        raise ValueError(f"contains more than {SECRET_CHARACTERS} characters")
    return text


def number(kind: type[int] | type[float], low: float, high: float) -> Parser:
    """Return a parser for a number of this kind from low to high."""
    noun = "whole number" if kind is int else "number"

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise ValueError(f"a {noun} from {low} to {high}") from None
        if not low <= value <= high:
            raise ValueError(f"a {noun} from {low} to {high}")
        return value

    return parse


def one_of(*choices: str) -> Parser:
    """Return a case-insensitive parser for one of these words."""

    def parse(text: str) -> str:
        if text.strip().lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text.strip().lower()

    return parse


def database_url(text: str) -> str:
    """Parse any connection string that libpq accepts; drop a driver in the scheme, because Rowcall chooses its own."""
    scheme, separator, rest = text.strip().partition("://")
    if separator and scheme.partition("+")[0] in {"postgresql", "postgres"}:
        if _is_cut_short(rest):
            raise ValueError("a URL with a password in which / ? # @ are written as %2F %3F %23 %40")
        return f"postgresql://{rest}"
    if not NAMES_A_DATABASE & set(connection_keywords(text) or ()):
        raise ValueError(
            # The example contains no password, because it would be redacted.
            "a URL such as postgresql://user@host:5432/database (a password follows the user after a colon), or"
            " host=... dbname=..., as libpq accepts them"
        )
    return text.strip()


def broker_url(text: str) -> str:
    """Parse what Celery accepts as `broker_url`: one URL, or several with semicolons, for a cluster."""
    if not all(re.match(r"[a-z][a-z0-9+.-]*://", one) for one in text.strip().split(";")):
        raise ValueError("a URL such as amqp://user@host:5672// (a password follows the user after a colon)")
    return text.strip()


def _is_cut_short(rest: str) -> bool:
    """Return whether libpq would read part of the password as host or port, and so show it in its messages."""
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return authority.count("@") > 1
    before_query, _, query = rest.partition("?")
    port = authority.rpartition(":")[2]
    return "@" in before_query or ("@" in query and ":" in authority and not re.fullmatch(r"\d*|.*]", port))


def connection_keywords(text: str) -> dict[str, str] | None:
    """Parse a connection string such as `host=db dbname='my app'`; return None for any other text."""
    if not KEYWORDS.fullmatch(text):
        return None
    found = {}
    for match in KEYWORD.finditer(text):
        value = match["value"]
        quoted = len(value) > 1 and value[0] == "'"
        found[match["name"]] = re.sub(r"\\(.)", r"\1", value[1:-1] if quoted else value)
    return found


def module_name(text: str) -> str:
    """Parse the dotted name of a Python package."""
    if not all(part.isidentifier() for part in text.strip().split(".")):
        raise ValueError("the name of a Python package, such as shop")
    return text.strip()


def environment_name(text: str) -> str:
    """Parse the name of an environment, which is shown on every screen."""
    if not text.strip().isprintable() or len(text.strip()) > 30:
        raise ValueError("1 to 30 printable characters, such as production")
    return text.strip()


def folder(text: str) -> Path:
    """Parse a folder's path; `~` is the home of the user who runs Rowcall."""
    if "\0" in text:
        raise ValueError("a path without a null character")
    return Path(text).expanduser()


def switch(text: str) -> bool:
    """Parse `on` or `off`."""
    return bool(one_of("off", "on")(text) == "on")
