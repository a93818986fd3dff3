"""`rowcall up` where the local database is that of another app, the usual port is in use, or nobody reads."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from rowcall.base.child_processes import own_command
from rowcall.base.errors import RowcallError
from rowcall.cli.up.demo import refuse_other_app
from tests.cli.test_up import Up, home, typed
from tests.support.processes import APPS, LIMIT_SECONDS, ROOT, rowcall

__all__ = ["home"]  # a fixture


def test_the_example_is_not_added_to_the_local_database_of_another_app(home: dict[str, str]) -> None:
    shop = {**home, "ROWCALL_APP": "shop", "PYTHONPATH": f"{APPS}:{ROOT}"}
    up = Up(shop, "--port", "0")
    assert "shop_book" in typed(shop, up, "types")
    up.end(signal.SIGINT)
    before = rowcall(shop, "definitions", "list", "--json").stdout
    refused = rowcall({name: value for name, value in home.items() if name != "ROWCALL_APP"}, "up", "--port", "0")
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"rowcall: the database in {home['ROWCALL_HOME']} is used by an app other than the example (its job types:"
        " shop_book, "
    )
    assert "ROWCALL_APP is not set: set ROWCALL_APP to that app's package, or set ROWCALL_HOME" in refused.stderr
    assert rowcall(shop, "definitions", "list", "--json").stdout == before
    listed = rowcall(shop, "runs", "list", "--json").stdout
    assert listed.count('"job_type"') == listed.count('"job_type": "noop"') == 1
    # A user who names the example wants it.
    Up({**home, "ROWCALL_APP": "rowcall_example"}, "--port", "0").end(signal.SIGINT)


@pytest.mark.parametrize(
    "row",
    [
        "INSERT INTO rowcall.job_definitions (name, job_type, payload) VALUES ('rings', 'shop_ring', '{}')",
        "INSERT INTO rowcall.job_runs (job_type, payload, status) VALUES ('shop_ring', '{}', 'queued')",
    ],
)
def test_a_definition_or_a_run_is_enough_to_tell_another_app(connection: Any, row: str) -> None:
    refuse_other_app(connection, Path("home"))
    database.fetch_all(connection, row)
    with pytest.raises(RowcallError, match="shop_ring"):
        refuse_other_app(connection, Path("home"))


def test_when_the_usual_port_is_in_use_it_says_which_one_it_took_and_why(home: dict[str, str], fresh_url: str) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        except OSError:
            pass  # another program has the port, which serves the test as well
        up = Up({**home, "DATABASE_URL": fresh_url})
        assert not up.api.endswith(":8000")
        assert "\n              not on port 8000, which is in use; --port chooses another\n" in up.said
        up.end(signal.SIGINT)


def test_when_nobody_reads_its_output_it_stops_without_an_error(home: dict[str, str], fresh_url: str) -> None:
    """As after `rowcall up | head -1`."""
    here = {**home, "DATABASE_URL": fresh_url, "ROWCALL_LOG_LEVEL": "error"}
    command = own_command("up", "--yes", "--port", "0")
    with subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("Starting")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(LIMIT_SECONDS) == 128 + signal.SIGPIPE
