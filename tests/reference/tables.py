"""The tables: columns, constraints and indexes."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, Table, UniqueConstraint
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex

from rowcall.schema.tables import metadata
from tests.reference.columns import meaning_of
from tests.reference.markdown import head, table
from tests.reference.table_meanings import TABLES


def page() -> str:
    """Return docs/reference/tables.md."""
    lines = head("The tables", "`shared/rowcall/schema/`")
    lines += [
        "All tables are in the schema `rowcall`. Read them as you like; change them only through Rowcall. Times are",
        "`timestamp with time zone`, by the clock of the database.",
        "",
    ]
    for described in metadata.sorted_tables:
        lines += section(described)
    return "\n".join(lines).rstrip() + "\n"


def section(described: Table) -> list[str]:
    """Return the section of one table."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    columns = (
        (
            f"`{column.name}`",
            column.type.compile(dialect).lower().replace("timestamp with time zone", "timestamptz"),
            "" if column.nullable else "not null",
            meaning_of(described.name, column.name),
        )
        for column in described.columns
    )
    lines = [f"## {described.name}", "", TABLES[described.name], ""]
    lines += table(("column", "type", "", "meaning"), columns)
    rules = [*constraints(described), *indexes(described)]
    return [*lines, *(f"- {rule}" for rule in rules), *([""] if rules else [])]


def constraints(described: Table) -> list[str]:
    """Return the constraints as the database checks them, without the primary key."""
    found = []
    for one in sorted(described.constraints, key=lambda constraint: str(constraint.name)):
        if isinstance(one, CheckConstraint):
            found.append(f"CHECK `{' '.join(str(one.sqltext).split())}`")
        elif isinstance(one, UniqueConstraint):
            found.append(f"UNIQUE `({', '.join(column.name for column in one.columns)})`")
        elif isinstance(one, ForeignKeyConstraint):
            names = ", ".join(column.name for column in one.columns)
            found.append(f"`{names}` references `{one.elements[0].target_fullname}`, ON DELETE {one.ondelete}")
    return found


def indexes(described: Table) -> list[str]:
    """Return the indexes, each with its columns and its condition."""
    return [_index(index) for index in sorted(described.indexes, key=lambda index: str(index.name))]


def _index(index: Index) -> str:
    text = str(CreateIndex(index).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    kind = "unique index" if index.unique else "index"
    return f"{kind} `{index.name}` on `{text.partition(' ON ')[2].partition(' ')[2]}`"
