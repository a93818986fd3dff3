"""A mutant: a guard in the queue's code, and its replacement."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.matching import spans_of, string_breaks, string_literals

ROOT = Path(__file__).parents[2]
QUEUE = "shared/rowcall/queue/"


@dataclass(frozen=True)
class Mutant:
    """`stands` occurs once in `place`, a constant or function of this file, in any layout."""

    name: str
    file: str
    place: str
    stands: str
    instead: str

    def applied(self, root: Path = ROOT) -> str:
        """Return the file's text with the mutant."""
        return self.applied_to((root / self.file).read_text())

    def applied_to(self, text: str) -> str:
        """Return this text of the file with the mutant."""
        first, last = lines_of(text, self.place)
        lines = text.splitlines(keepends=True)
        scope = "".join(lines[first:last])
        found = spans_of(self.stands, scope)
        if len(found) != 1:
            raise ValueError(
                f"{self.name}: {self.stands!r} occurs {len(found)} times in {self.place} of {self.file}; the code has"
                " changed, so change the mutant too, or remove it"
            )
        return "".join(lines[:first]) + self._replaced(scope, *found[0]) + "".join(lines[last:])

    def _replaced(self, scope: str, start: int, end: int) -> str:
        inside = any(left < place < right for left, right in string_literals(scope) for place in (start, end))
        # A string may continue with another prefix after a break inside the replaced text: keep the break.
        breaks = [scope[left:right] for left, right in string_breaks(scope) if inside and start <= left < right <= end]
        return scope[:start] + self.instead.strip() + "".join(breaks) + scope[end:]


def at(file: str, place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Return mutants of one place of the queue: what goes wrong, the code, and its replacement."""
    return [Mutant(name, QUEUE + file, place, stands, instead) for name, stands, instead in changes]


def lines_of(text: str, place: str) -> tuple[int, int]:
    """Return the lines of a module's constant or function."""
    for node in ast.parse(text).body:
        if place in names_of(node):
            assert node.end_lineno
            return node.lineno - 1, node.end_lineno
    raise ValueError(f"there is no {place}")


def names_of(node: ast.stmt) -> list[str]:
    """Return the names that a module's statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
