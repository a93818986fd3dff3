"""The blocks about `run.transaction()` work on an app's table as printed, and with Flask-SQLAlchemy's models."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rowcall.base import database
from rowcall.base.database import fetch_all, fetch_value
from rowcall_worker.attempt.context import Run
from tests.support.processes import ROOT
from tests.worker.attempts import Attempts

BLOCKS = re.findall(r"^```python\n(with run\.transaction.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


class Base(DeclarativeBase):
    pass


class Declared(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    packed: Mapped[bool]


class Flasks(SQLAlchemy().Model):  # type: ignore[misc]
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    packed: Mapped[bool]


def test_there_is_one_for_psycopg2_and_one_for_sqlalchemy() -> None:
    assert [("cursor" in block, "as_=Session" in block) for block in BLOCKS] == [(True, False), (False, True)]


@pytest.mark.parametrize("model", [Declared, Flasks])
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_commits_the_apps_rows_with_the_runs_success(fresh_url: str, block: str, model: Any) -> None:
    attempt = Attempts(fresh_url)
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, "INSERT INTO public.orders (name) VALUES ('bread')")

    def handler(run: Run) -> None:
        exec(block, {"run": run, "Order": model, "Session": Session})  # noqa: S102  # README's own lines

    assert attempt(handler).finished
    assert attempt.state[0] == "succeeded"
    with database.transaction(fresh_url) as connection:
        assert fetch_value(connection, "SELECT packed FROM public.orders") is True
        assert fetch_value(connection, "SELECT result FROM rowcall.job_runs") == {"packed": True}
