"""Quoting for crontabs, systemd units and Kubernetes manifests, so that every value survives."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

# Words that need no quotes in a unit.
PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")

# Runs the program that the next word names, with the words after that.
BY_SHELL = ("/bin/sh", "-c", 'exec "$0" "$@"')


def cron_word(text: str) -> str:
    r"""Quote one word without line breaks for cron and then for the shell.

    Some crons remove the \ before a %, some do not, and some replace two \ with one.  So each % is written as \%
    outside of quotes, where the shell removes a \ that cron has left, and two \ never follow each other.
    """
    pieces = [piece for piece in re.split(r"([%\\])", text) if piece] or [""]
    return "".join(r"\%" if piece == "%" else shlex.quote(piece) for piece in pieces)


def unit_word(text: str) -> str:
    """Quote one word of Environment= or ExecStart= in a systemd unit."""
    escapes = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t", "%": "%%"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def unit_command(command: Sequence[str]) -> str:
    """A whole ExecStart=, in which systemd also replaces $NAME everywhere but in the path of the program."""
    # In that path, systemd allows neither quotes nor \, and a literal $ cannot be written.
    words = [*BY_SHELL, *command] if re.search(r"""['"\\$]""", command[0]) else command
    return " ".join(word if PLAIN.fullmatch(word) else unit_word(word).replace("$", "$$") for word in words)


def unit_path(text: str) -> str:
    """A folder for WorkingDirectory=, which has no quoting."""
    return text.replace("%", "%%")


def unit_pattern(text: str) -> str:
    r"""One file for EnvironmentFile=, which takes patterns, so *, ?, [ and \\ are escaped."""
    return unit_path(re.sub(r"([*?\[\\])", r"\\\1", text))


def pod_word(text: str) -> str:
    """Quote an argument or a variable's value of a container, where Kubernetes expands $(NAME)."""
    return yaml_scalar(text.replace("$", "$$"))


def yaml_scalar(text: str) -> str:
    """This text, quoted for YAML; without quotes, some parsers would not read `on` and `007` as text."""
    # YAML has all of JSON's escapes.  JSON leaves these characters unescaped; YAML would break a line or refuse them.
    return re.sub(
        "[\u2028\u2029\ufeff\ufffe\uffff]",
        lambda found: f"\\u{ord(found[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )
