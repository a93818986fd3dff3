"""The example as the app of all tests here: its job types, its tables, and a new small SaaS for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall_example.tables import create_tables
from rowcall_migrations.migrate import migrate
from tests.conftest import sibling
from tests.example.saas import Saas, small_saas
from tests.support.gate import Gate, gate

TEMPLATE = "example_template"


@pytest.fixture(scope="module", autouse=True)
def app_of_these_tests(example_app: None) -> None:
    """Make the example the app of all tests here."""


@pytest.fixture(scope="session")
def template(server_url: str, template: str) -> str:
    """Return the migrated database with the example's tables; the first xdist worker creates it."""
    connection = database.connect(server_url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(2)")
        cursor.execute("SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)", (TEMPLATE,))
        if cursor.fetchone() == (False,):
            cursor.execute(f"CREATE DATABASE {TEMPLATE}_new TEMPLATE {template}")
            with database.transaction(sibling(server_url, f"{TEMPLATE}_new")) as tables:
                create_tables(tables)
            cursor.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}")
    connection.close()
    return TEMPLATE


@pytest.fixture
def migrated_url(empty_url: str) -> str:
    """Return the URL of a database for this test, with Rowcall's schema but without the example's tables."""
    migrate(empty_url, lock_timeout=3)
    return empty_url


@pytest.fixture
def saas(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> Iterator[Saas]:
    with small_saas(environment, fresh_url, tmp_path) as saas:
        yield saas


@pytest.fixture
def barred(saas: Saas) -> Iterator[Gate]:
    """Yield the gate in the SaaS's database."""
    with gate(saas.url) as barred:
        yield barred
