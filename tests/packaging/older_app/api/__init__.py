"""The team's web app."""

import os
from contextlib import closing

import flask
import psycopg2
from shared.orders import job_runs, metadata
from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import Session
from worker.job_types import SHIP


def create_app() -> flask.Flask:
    """Return the app on the database of DATABASE_URL."""
    app = flask.Flask(__name__)
    engine = create_engine(os.environ["DATABASE_URL"])
    metadata.create_all(engine)

    @app.post("/orders/<customer>")
    def order(customer: str) -> dict[str, int]:
        """Insert an order and enqueue its shipment, or neither."""
        with Session(engine) as session, session.begin():
            order_id = session.scalar(insert(job_runs).values(customer=customer).returning(job_runs.c.id))
            enqueued = SHIP.enqueue(session, {"order_id": order_id})
            if customer == "nobody":
                raise LookupError("this customer is not known, so nothing may remain")
        return {"order": order_id, "run": enqueued.run_id}

    @app.post("/telephone/<customer>")
    def order_by_telephone(customer: str) -> dict[str, int]:
        """The same on psycopg2's own connection, as in the team's older code."""
        connection = psycopg2.connect(os.environ["DATABASE_URL"])
        with closing(connection), connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO job_runs (customer) VALUES (%s) RETURNING id", [customer])
            [order_id] = cursor.fetchone()
            enqueued = SHIP.enqueue(connection, {"order_id": order_id})
        return {"order": order_id, "run": enqueued.run_id}

    @app.get("/orders")
    def orders() -> dict[str, str]:
        """Return the status of each customer's order."""
        with Session(engine) as session:
            return dict(session.execute(select(job_runs.c.customer, job_runs.c.state)).all())

    return app
