"""docs/managed.md: its commands work, one after another, and libpq reads its URLs."""

from __future__ import annotations

from pathlib import Path

from psycopg2.extensions import parse_dsn

from tests.schema.catalogue import asked
from tests.support.page import Reader, blocks

PAGE = "managed.md"


def test_the_commands_work_from_an_empty_database_on(empty_url: str, tmp_path: Path) -> None:
    migrate, examine, restored = blocks(PAGE, "sh")
    reader = Reader(tmp_path, empty_url)
    assert "CREATE TABLE" in reader.type(f"{migrate}cat rowcall.sql")
    assert "connections reach PostgreSQL directly" in reader.type(examine)
    assert reader.type(restored).startswith("restore recorded")


def test_the_statement_works(empty_url: str) -> None:
    [statement] = blocks(PAGE, "sql")
    asked(empty_url, "CREATE ROLE shop_worker")
    try:
        asked(empty_url, statement)
        [role] = asked(empty_url, "SELECT rolconfig FROM pg_roles WHERE rolname = 'shop_worker'")
        assert role["rolconfig"] == ["idle_session_timeout=0"]
    finally:
        asked(empty_url, "DROP ROLE shop_worker")


def test_libpq_reads_the_urls() -> None:
    verified, several = (parse_dsn(block.strip().removeprefix("DATABASE_URL=")) for block in blocks(PAGE, "ini"))
    assert verified["sslmode"] == "verify-full"
    assert several["host"] == "db1.example.com,db2.example.com"
    assert several["target_session_attrs"] == "read-write"
