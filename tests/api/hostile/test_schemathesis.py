"""schemathesis with all its checks: it makes thousands of requests from /openapi.json, and checks each response."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall_example.demo import seed
from tests.api.serving import served
from tests.support.processes import ROOT

HERE = Path(__file__).parent

BY = Operator("a test")

LEAST_CASES = 2000
LIMIT_SECONDS = 500


@pytest.mark.timeout(LIMIT_SECONDS + 20)
@pytest.mark.usefixtures("example_app")
def test_every_answer_to_thousands_of_requests_is_as_the_document_says(
    environment: dict[str, str], fresh_url: str, tmp_path: Path
) -> None:
    with database.transaction(fresh_url) as connection:
        seed.seed(connection, 3)
        key, spare = (api_keys.create_key(connection, name, ["admin"], BY) for name in ("schemathesis", "spare"))
        ids = {"OWN_KEY": api_keys.id_of(connection, key), "SPARE_KEY": api_keys.id_of(connection, spare)}
    with served({**environment, "DATABASE_URL": fresh_url}, tmp_path) as server:
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("st")),
                f"--config-file={HERE / 'schemathesis.toml'}",
                "run",
                f"http://127.0.0.1:{server.port}/openapi.json",
                f"--header=Authorization: Bearer {key}",
                "--checks=all",
                "--max-examples=15",
                "--seed=1",
                "--continue-on-failure",
                "--no-color",
            ],
            env={
                **environment,
                **{name: str(number) for name, number in ids.items()},
                "SCHEMATHESIS_HOOKS": "tests.api.hostile.contract",
                "PYTHONPATH": str(ROOT),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    with database.transaction(fresh_url) as connection:
        assert api_keys.find_caller(connection, key), "the key of the requests was valid until the end"
    generated = re.search(r"(\d[\d,]*) generated", done.stdout)
    assert generated, done.stdout
    assert int(generated[1].replace(",", "")) >= LEAST_CASES
