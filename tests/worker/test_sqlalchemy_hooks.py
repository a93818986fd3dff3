"""A handler's session with an app's own hooks, rollbacks and session classes: no success without its rows."""

from __future__ import annotations

import uuid
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import sqlalchemy
from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from rowcall_worker.attempt.context import Run
from tests.worker.attempts import Attempts


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


@pytest.fixture
def attempt(fresh_url: str) -> Attempts:
    return Attempts(fresh_url)


@pytest.mark.parametrize("hook", ["before_flush", "after_flush", "after_flush_postexec", "before_commit"])
def test_what_an_apps_hook_adds_during_a_flush_is_committed_too(attempt: Attempts, hook: str) -> None:
    class Audited(Session):
        pass

    @sqlalchemy.event.listens_for(Audited, hook)
    def audit(session: Session, *_: object) -> None:
        if not session.info.setdefault("audited", False):
            session.info["audited"] = True
            session.add(Order(name="audit"))

    def handler(run: Run) -> None:
        with run.transaction(as_=Audited) as session:
            session.add(Order(name="bread"))

    assert attempt(handler).finished
    status, names = attempt.state
    assert (status, sorted(names)) == ("succeeded", ["audit", "bread"])


def test_a_hook_that_always_adds_something_ends_the_attempt(attempt: Attempts) -> None:
    class Endless(Session):
        pass

    @sqlalchemy.event.listens_for(Endless, "after_flush_postexec")
    def more(session: Session, *_: object) -> None:
        session.add(Order(name=f"{uuid.uuid4()}"))

    def handler(run: Run) -> None:
        with run.transaction(as_=Endless) as session:
            session.add(Order(name="bread"))

    assert "the session still had changes after 100 flushes" in attempt.failed_by(handler)[1]
    assert attempt.state == ("running", [])


@pytest.mark.parametrize("how", ["an error of the app", "a refused row", "a rollback"])
@pytest.mark.parametrize("ended", ["close", "with"])
def test_a_close_after_a_nested_rollback_is_refused_as_any_other(attempt: Attempts, how: str, ended: str) -> None:
    def optional_part(session: Session) -> None:
        if how == "a rollback":
            session.begin_nested().rollback()
            return
        with suppress(IntegrityError, ValueError), session.begin_nested():
            if how == "an error of the app":
                raise ValueError("the optional part failed")
            session.add(Order(name="bread"))
            session.flush()

    def handler(run: Run) -> None:
        with run.transaction(as_=Session) as session, session if ended == "with" else nullcontext():
            session.add(Order(name="bread"))
            session.flush()
            optional_part(session)
            if ended == "close":
                session.close()

    assert "the handler called close()" in attempt.failed_by(handler)[1]
    assert attempt.state == ("running", [])


@pytest.mark.parametrize("scoped", [True, False])
def test_a_session_that_writes_to_a_database_of_its_own_choice_is_refused(attempt: Attempts, scoped: bool) -> None:
    db = SQLAlchemy()
    app = Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = attempt.url.replace("postgresql:", "postgresql+psycopg2:", 1)
    db.init_app(app)

    def handler(run: Run) -> None:
        with run.transaction(as_=db.session if scoped else db.session.session_factory) as session:
            session.execute(text("INSERT INTO public.orders (name) VALUES ('bread')"))

    with app.app_context():
        _, said, permanent = attempt.failed_by(handler)
        db.session.remove()
    assert permanent
    assert "pass as_=sqlalchemy.orm.Session" in said
    assert attempt.state == ("running", [])


@pytest.mark.parametrize("how", ["binds", "scoped", "routing"])
def test_a_session_with_another_engine_for_its_models_is_refused(attempt: Attempts, how: str) -> None:
    engine = sqlalchemy.create_engine(attempt.url.replace("postgresql:", "postgresql+psycopg2:", 1))

    class Routing(Session):
        def get_bind(self, *_: Any, **__: Any) -> sqlalchemy.Engine:
            return engine

    classes: dict[str, Any] = {
        "binds": sessionmaker(binds={Base: engine}),
        "scoped": scoped_session(sessionmaker(binds={Order: engine})),
        "routing": Routing,
    }

    def handler(run: Run) -> None:
        with run.transaction(as_=classes[how]) as session:
            session.add(Order(name="bread"))

    _, said, permanent = attempt.failed_by(handler)
    engine.dispose()
    assert permanent
    assert "pass as_=sqlalchemy.orm.Session" in said
    assert attempt.state == ("running", [])
