"""The plan of a statement as PostgreSQL executed it, and how many rows it read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rowcall.base.database import PgConnection
from rowcall.base.prepared import SETTINGS


def plan(connection: PgConnection, sql: str, parameters: dict[str, Any], before: str = "") -> list[dict[str, Any]]:
    """Execute `before` and the statement, roll back, and return every node of the statement's plan."""
    with connection.cursor() as cursor:
        cursor.execute(f"BEGIN; {before}", parameters)
        settings = SETTINGS.match(sql)
        assert settings
        cursor.execute(f"{settings[0]} EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql[settings.end() :]}", parameters)
        [[[explained]]] = cursor.fetchall()
        cursor.execute("ROLLBACK")
    return list(_nodes(explained["Plan"]))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", []):
        yield from _nodes(inner)


def looked_at(nodes: list[dict[str, Any]], table: str = "job_runs") -> int:
    """Return how many rows of the table the statement read, including those it skipped."""
    scans = [node for node in nodes if node.get("Relation Name") == table and "Scan" in node["Node Type"]]
    assert scans, f"the statement reads {table}"
    assert "Seq Scan" not in {node["Node Type"] for node in scans}, json.dumps(scans, indent=1)
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * max(node["Actual Loops"], 1) for node in scans
    )
