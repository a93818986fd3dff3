"""YAML without what can surprise: plain values, names that stand once, and no tags or aliases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError

from rowcall.base.errors import DefinitionFileInvalid


class PlainComposer(Composer):
    """Plain values: no aliases, with which a few lines would become gigabytes, and no tags."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The composer's hook for each value."""
        event = self.parser.peek_event()
        if event.anchor is not None:
            sign = "anchors (&) and aliases (*)"
        elif getattr(event, "tag", None) is not None:
            sign = "tags (!)"
        else:
            return super().compose_node(parent, index)
        raise ComposerError(problem=f"{sign} are not supported: write the value itself", problem_mark=event.start_mark)


def load(file: Path, text: str) -> object:
    """What the document holds; DefinitionFileInvalid says where it is not plain YAML."""
    # Pure Python reads YAML 1.2, where `on` and `12:30` are words; equal names in one table are refused.
    reader = YAML(typ="safe", pure=True)
    reader.Composer = PlainComposer
    try:
        return reader.load(text)
    except MarkedYAMLError as error:
        at = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DefinitionFileInvalid(f"{file}{at}: is not YAML: {_problem(error)}") from None
    except RecursionError:
        raise DefinitionFileInvalid(f"{file}: is not YAML: it nests too deeply") from None
    except Exception as error:
        # The library also fails on values such as a date that does not exist.
        raise DefinitionFileInvalid(f"{file}: is not YAML: {' '.join(str(error).split())}") from None


def _problem(error: MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if "alias" in f"{error.context} {problem}" or "'@'" in problem:
        return f"{problem}; a schedule that begins with * or @ must be quoted"
    return problem
