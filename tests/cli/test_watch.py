"""`rowcall runs list --watch`: it goes on until Ctrl-C, and ends quietly."""

from __future__ import annotations

from rowcall.base import database
from rowcall.status import Status
from tests.support.live_terminal import live_terminal
from tests.support.rows import run_in
from tests.support.server import let_connect


def test_a_watched_list_waits_for_a_database_that_is_away_and_ends_at_ctrl_c(
    environment: dict[str, str], fresh_url: str, server_url: str
) -> None:
    with live_terminal({**environment, "DATABASE_URL": fresh_url}, "runs", "list", "--watch") as terminal:
        terminal.wait_for("there are no runs")
        let_connect(server_url, fresh_url, allowed=False)
        terminal.wait_for("^the database is not available: no connection to ", "trying again in 2 seconds")
        let_connect(server_url, fresh_url, allowed=True)
        with database.transaction(fresh_url) as connection:
            run_in(connection, Status.QUEUED)
        terminal.wait_for(" noop +queued ")
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert "Aborted" not in terminal.printed


def test_a_watched_list_whose_database_is_away_from_the_start_is_refused(environment: dict[str, str]) -> None:
    nowhere = {**environment, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    with live_terminal(nowhere, "runs", "list", "--watch") as terminal:
        assert terminal.wait_for_end() == 3
