"""The team's handlers."""

import os

import psycopg2
from worker.job_types import SHIP


@SHIP.handler
def ship(run):
    """Ship the order on the team's own connection."""
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("UPDATE job_runs SET state = 'shipped' WHERE id = %(order_id)s", run.payload)
    finally:
        connection.close()
