"""Shared by all tables: the metadata, the names of constraints, and columns for ids and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Column, Connection, DateTime, Identity, MetaData, Table, event, text

metadata = MetaData(
    schema="rowcall",
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s",
    },
)


def id_column() -> Column[int]:
    """Return the column of the id, which the database always assigns."""
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


def moment(name: str, default: bool | str = False, nullable: bool = True) -> Column[Any]:
    """Return the column of a point in time; True means the transaction's time by the database's clock."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable and not default,
        server_default=text("now()" if default is True else default) if default else None,
    )


def check(name: str, condition: str) -> CheckConstraint:
    """Return a CHECK, named after the condition."""
    return CheckConstraint(text(condition), name=name)


def one_of(name: str, column: str, *values: str) -> CheckConstraint:
    """Return a CHECK that a column contains one of these words."""
    words = ", ".join(f"'{value}'" for value in values)
    return check(name, f"{column} IN ({words})")


def storage(**parameters: float | str) -> dict[str, dict[str, float | str]]:
    """Return a table's storage parameters, as its `info`."""
    return {"storage": parameters}


@event.listens_for(metadata, "after_create")
def set_storage(_: MetaData, connection: Connection, tables: Iterable[Table], **__: object) -> None:
    """Give new tables their storage parameters, which SQLAlchemy 2.0 cannot write into CREATE TABLE."""
    for table in tables:
        parameters = ", ".join(f"{name} = {value}" for name, value in table.info.get("storage", {}).items())
        if parameters:
            connection.exec_driver_sql(f"ALTER TABLE {table.fullname} SET ({parameters})")
