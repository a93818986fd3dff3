"""`make bench` shows what importing Rowcall costs a web process that has imported psycopg2."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import compare_imports


def test_each_import_is_measured_beside_psycopg2_alone_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    compare_imports(1)
    title, *rows = capsys.readouterr().out.strip().splitlines()
    assert title.endswith("CPU ms")
    assert [row.split(" median ")[0].strip() for row in rows] == [
        "import psycopg2",
        "import psycopg2, marshmallow",
        "import rowcall",
        "from rowcall import JobType, enqueue",
        "from rowcall import EffectKind, JobType, enqueue",
    ]
    assert all("of import psycopg2 " in row for row in rows)
