"""The page docs/queries.sql, from the statements and the values of their parameters."""

from __future__ import annotations

import re

from tests.queries.samples import sample
from tests.queries.statements import Statement, statements

HEAD = """\
-- Every statement of the queue, the effects and the definitions, as PostgreSQL gets it.
--
-- Produced by `make docs` from the code.  Each has a name, its module, the comment that stands beside it there, and a
-- value for each of its parameters.  Run one in psql, or all of them:
--
--     psql "$DATABASE_URL" --file docs/queries.sql
--
-- Each runs in a transaction that is rolled back, so that nothing changes.  Where a value does not fit the rows of your
-- database, PostgreSQL refuses that statement, and psql goes on with the next.  EXPLAIN shows a plan.
"""

PARAMETER = re.compile(r"%\((\w+)\)s(::[\w.]+\[\])?")


def page() -> str:
    """The whole file."""
    return "\n".join([HEAD, *(entry(statement) for statement in statements())])


def entry(statement: Statement) -> str:
    """One statement as psql runs it."""
    names = dict.fromkeys(match[1] for match in PARAMETER.finditer(statement.text))
    arrays = {match[1] for match in PARAMETER.finditer(statement.text) if match[2]}
    lines = [
        f"-- {statement.module}: {statement.name}",
        *(f"-- {line}".rstrip() for line in statement.comment),
        *(f"\\set {name} {_quoted(sample(name, name in arrays))}" for name in names),
        "BEGIN;",
        f"{PARAMETER.sub(_variable, statement.text).rstrip().rstrip(';')};",
        "ROLLBACK;",
    ]
    return "\n".join(lines) + "\n"


def _variable(parameter: re.Match[str]) -> str:
    return f":'{parameter[1]}'{parameter[2] or ''}"


def _quoted(value: str) -> str:
    """As psql's \\set reads it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
