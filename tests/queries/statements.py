"""Find every statement that the code sends, in the code itself.

A statement is a constant of a module, or a text within one, that some function sends.  A constant that is used only
inside other statements is part of them, and is not listed separately.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path

import rowcall

ROOT = Path(rowcall.__path__[0])
PACKAGES = ("queue", "effects", "definitions")

# The functions that send a statement, which is their second argument.
SENDERS = ("fetch_all", "fetch_one", "fetch_value", "fetch_tuples", "fetch_prepared", "searched")

STATEMENT = re.compile(r"\s*\(?\s*(SELECT|INSERT|UPDATE|DELETE|WITH|SET)\b")

# A module, and the name of a constant in it.
Origin = tuple[str, str]


@dataclass(frozen=True)
class Statement:
    """A statement: its place, the comment above it, and the text that PostgreSQL gets."""

    module: str
    name: str
    comment: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Source:
    """A module's source."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def constants(self) -> dict[str, ast.Assign]:
        """Return name -> assignment, in the order of the module."""
        return {
            node.targets[0].id: node
            for node in self.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
        }

    @cached_property
    def imported(self) -> dict[str, str]:
        """Return name -> the module that it is imported from."""
        imports = [node for node in self.tree.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module or "" for node in imports for alias in node.names}

    def origin(self, name: str) -> Origin:
        """Return where a name that is used here is defined."""
        return (self.name if name in self.constants else self.imported.get(name, ""), name)

    def sent(self) -> Iterator[tuple[Origin, tuple[Origin, ...]]]:
        """Yield constants that functions send whole, each with those sent before it in the same round trip."""
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef):
                yield from self._used(function)

    def _used(self, node: ast.AST) -> Iterator[tuple[Origin, tuple[Origin, ...]]]:
        terms = list(_operands(node))
        if all(isinstance(term, ast.Name) for term in terms):
            *before, last = (self.origin(term.id) for term in terms if isinstance(term, ast.Name))
            yield last, tuple(before)
        elif not isinstance(node, ast.JoinedStr) and not _is_format(node):
            for child in ast.iter_child_nodes(node):
                yield from self._used(child)

    def parts(self, name: str) -> list[Origin]:
        """Return the constants that this one is made of."""
        inside = [node for text in ast.walk(self.constants[name]) if _is_made_of(text) for node in ast.walk(text)]
        names = dict.fromkeys(node.id for node in inside if isinstance(node, ast.Name) and node.id.isupper())
        return [self.origin(part) for part in names]

    def comment(self, name: str) -> tuple[str, ...]:
        """Return the lines of the comment right above a constant."""
        above = self.text.splitlines()[: self.constants[name].lineno - 1]
        lines: list[str] = []
        while above and above[-1].startswith("#"):
            lines.insert(0, above.pop().removeprefix("#").removeprefix(" "))
        return tuple(lines)

    def written_inside(self) -> list[int]:
        """Return the lines on which a function sends a statement that is not a constant."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and len(node.args) > 1]
        return [
            call.lineno
            for call in calls
            if isinstance(call.func, ast.Name)
            and call.func.id in SENDERS
            and any(isinstance(part, (ast.Constant, ast.JoinedStr)) for part in _operands(call.args[1]))
        ]


def sources() -> dict[str, Source]:
    """Return every module of the packages by its name."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    names = [".".join(("rowcall", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    return {name: Source(name, file.read_text()) for name, file in zip(names, files, strict=True)}


def statements() -> list[Statement]:
    """Return every statement, module by module, in the order of the source."""
    known = sources()
    sent: dict[Origin, tuple[Origin, ...]] = {}
    for source in known.values():
        for origin, before in source.sent():
            sent[origin] = max(sent.get(origin, ()), before, key=len)
    return [
        Statement(source.name, place, _explanation(known, source, name), f"{_before(sent[source.name, name])}{text}")
        for source in known.values()
        for name in source.constants
        if (source.name, name) in sent
        for place, text in _texts(name, _value((source.name, name)))
        if STATEMENT.match(text)
    ]


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the texts within a constant, each with its path."""
    if isinstance(value, str):
        yield name, value.strip()
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            shown = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            yield from _texts(f"{name}[{shown}]", inner)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(f"{name}.{field.name}", getattr(value, field.name))


def _explanation(known: Mapping[str, Source], source: Source, name: str) -> tuple[str, ...]:
    """Return the comment of a constant or, if it has none, the comments of its parts."""
    comment = source.comment(name)
    if comment:
        return comment
    parts = [(known[module], part) for module, part in source.parts(name) if module in known]
    return tuple(line for module, part in parts for line in _explanation(known, module, part))


def _before(origins: Sequence[Origin]) -> str:
    return "".join(f"{_value(origin)}\n" for origin in origins)


def _value(origin: Origin) -> object:
    module, name = origin
    return getattr(importlib.import_module(module), name)


def _is_made_of(node: ast.AST) -> bool:
    return isinstance(node, (ast.JoinedStr, ast.BinOp)) or _is_format(node)


def _is_format(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"


def _operands(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the terms of a sum."""
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    else:
        yield node
