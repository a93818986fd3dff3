"""What the log contains of a failed statement: the error and the statement, but none of its values."""

from __future__ import annotations

import psycopg2
import pytest
import sqlalchemy

from rowcall.base import database
from rowcall.base.database.pool import open_pool
from rowcall.base.logs import LogEvent, log
from tests.support.logged import logged

VALUE = "the salary of Ada"

STATEMENTS = {
    "a type that there is not": "SELECT %(value)s::type_of_mine",
    "a row that a constraint refuses": "INSERT INTO rowcall.job_runs (job_type, payload) VALUES (%(value)s, NULL)",
}


def traceback_in(error: Exception) -> str:
    """Return the traceback in the log line of this error."""
    with logged() as lines:
        log().error(LogEvent.API_REQUEST_FAILED, exc_info=error)
    return str(lines[0]["exception"])


@pytest.mark.parametrize("what", STATEMENTS)
def test_an_error_of_the_pool_is_logged_without_the_values_of_its_statement(module_url: str, what: str) -> None:
    pool = open_pool(module_url, 1)
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught, pool.connect() as connection:
        database.fetch_all(connection, STATEMENTS[what], {"value": VALUE})
    pool.dispose()
    written = traceback_in(caught.value)
    assert "psycopg2.errors." in written
    assert "[SQL: " in written
    assert VALUE not in written


@pytest.mark.parametrize("what", STATEMENTS)
def test_an_error_of_a_connection_is_logged_without_the_values_of_its_statement(module_url: str, what: str) -> None:
    with pytest.raises(psycopg2.Error) as caught, database.transaction(module_url) as connection:
        database.fetch_all(connection, STATEMENTS[what], {"value": VALUE})
    written = traceback_in(caught.value)
    assert "psycopg2.errors." in written
    assert VALUE not in written


def test_parameters_that_an_apps_own_pool_shows_are_hidden_wherever_an_error_is_told(module_url: str) -> None:
    pool = sqlalchemy.create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(module_url))
    with pytest.raises(sqlalchemy.exc.DBAPIError) as caught, pool.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT :value FROM nowhere"), {"value": VALUE})
    pool.dispose()
    with logged() as lines:
        log().info(LogEvent.RUN_FAILED, error=str(caught.value))
    assert "[SQL: SELECT %(value)s FROM nowhere]" in lines[0]["error"]
    assert "[parameters: ***" in lines[0]["error"]
    assert VALUE not in lines[0]["error"]
