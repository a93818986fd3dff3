"""The view of `rowcall up`: what it says about each run, whatever the terminal's size, and what it reads for that."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rowcall.base.database import PgConnection, fetch_all
from rowcall.cli.up.live.logs import Logs
from rowcall.cli.up.live.reader import Reader
from rowcall.cli.up.live.snapshot import Snapshot, read_snapshot
from rowcall.cli.up.live.state import State
from rowcall.cli.up.live.view import View
from rowcall.cli.up.processes import Running
from rowcall.cli.up.reports import SERVICES
from rowcall.status import Status
from rowcall_example.demo.runs import Shown
from tests.support.rows import run_in

DEMO = Shown([], "added 20 users", {7: "this charge is declined on purpose: `rowcall runs retry 7` charges it"})
RUNNING = Running(
    "http://127.0.0.1:8000",
    "http://127.0.0.1:8000/admin/link/once",
    "postgresql://127.0.0.1:1/none",
    "17.2",
    "",
    None,
    {"id": 1},
    DEMO,
    (),
)


def run(run_id: int, status: str, **more: Any) -> dict[str, Any]:
    plain = {"attempts": 1, "error_type": None, "error": None, "share": None, "note": None, "running_for": 9.0}
    return {"id": run_id, "job_type": "charge_invoice", "status": status, "age": 180.0, "due_in": -9.0, **plain, **more}


def drawn(
    snapshot: Snapshot | None, columns: int = 80, lines: int = 24, running: Running | None = RUNNING
) -> list[str]:
    """The lines of the view."""
    reader = Reader(RUNNING.postgres, None, ())  # not started: it keeps this snapshot
    reader.snapshot = snapshot
    state = State(Path(".rowcall"), ready=dict.fromkeys(SERVICES, "17.2"), running=running, reader=reader)
    console = Console(width=columns, height=lines, file=StringIO(), record=True, force_terminal=True)
    console.print(View(state))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_each_run_says_what_matters_in_its_status() -> None:
    runs = [
        run(9, "running", share=0.25, note="page\n1"),
        run(6, "running"),
        run(7, "dead", error_type="Declined", error="no"),
        run(8, "failed", error_type="E", error="no\n\x1b route", due_in=90),
        run(10, "succeeded", attempts=2),
        run(11, "queued", due_in=5 * 3600.0),
    ]
    lines = drawn(Snapshot({"dead": 1, "running": 2}, runs, [], {7: "dead"}), 100, 30)
    [first] = [number for number, line in enumerate(lines) if line.startswith("Runs ")]
    assert lines[first] == "Runs   2 running   1 dead"
    assert [" ".join(line.split()) for line in lines[first + 1 : first + 7]] == [
        "9 charge_invoice running ━━━━━━━━━━━━ 25% page 1 3 min ago",
        "6 charge_invoice running started 9 s ago 3 min ago",
        "7 charge_invoice dead on purpose, see below 3 min ago",
        r"8 charge_invoice failed retry in 90 s, E: no \x1b route 3 min ago",
        "10 charge_invoice succeeded on attempt 2 3 min ago",
        "11 charge_invoice queued due in 5 h 3 min ago",
    ]
    assert "Run 7: this charge is declined on purpose: `rowcall runs retry 7` charges it" in lines
    assert any(line.endswith("rowcall runs show 7") for line in lines)


def test_what_failed_on_purpose_and_was_retried_is_announced_no_more() -> None:
    lines = drawn(Snapshot({"succeeded": 1}, [run(7, "succeeded", attempts=1)], [], {7: "succeeded"}))
    assert not any("on purpose" in line for line in lines)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (60, 20), (200, 60)])
def test_the_view_fits_the_terminal_whatever_is_in_it(columns: int, lines: int) -> None:
    runs = [run(number, "dead", error_type="E", error="long " * 100) for number in range(100, 120)]
    effect = {"kind": "mail", "run_id": 1, "state": "unknown", "target": "k" * 200, "age": 1}
    shown = drawn(Snapshot({"dead": 20}, runs, [effect] * 20, {7: "dead"}), columns, lines)
    assert lines - 3 <= len(shown) < lines or len(shown) == 36, "a large terminal has room for more than is shown"
    assert max(map(len, shown)) < columns
    assert shown[0].startswith("Rowcall is up.")
    assert shown[-1] == "  open http://127.0.0.1:8000/admin/link/once"
    assert [line for line in shown if " mail " in line]


def test_before_anything_has_run_it_says_so() -> None:
    lines = drawn(Snapshot({}, [], [], {}), running=replace(RUNNING, demo=None))
    assert "Runs   none yet" in lines
    assert "Effects   none yet" in lines


def test_it_reads_the_newest_runs_and_their_effects_and_with_a_queue_only_its_own(connection: PgConnection) -> None:
    mine = run_in(connection, Status.RUNNING, progress="""'{"share": 0.5, "note": "half"}'""")["id"]
    others = run_in(connection, Status.DEAD, queue="'theirs'")["id"]
    for run_id, key in ((mine, "a"), (others, "b")):
        fetch_all(
            connection,
            """INSERT INTO rowcall.sent_emails (idempotency_key, content_hash, run_id, lease_no, recipient, subject)
            VALUES (%(key)s, '', %(run_id)s, 1, %(key)s, 'Hello')""",
            {"run_id": run_id, "key": key},
        )
    everything = read_snapshot(connection, None, [others])
    assert everything.counts == {"running": 1, "dead": 1}
    assert [(run["id"], run["share"], run["note"]) for run in everything.runs] == [
        (mine, 0.5, "half"),
        (others, None, None),
    ]
    assert {effect["target"] for effect in everything.effects} == {"a, Hello", "b, Hello"}
    assert everything.announced == {others: "dead"}
    queue = read_snapshot(connection, "theirs", ())
    assert (queue.counts, [run["id"] for run in queue.runs]) == ({"dead": 1}, [others])
    assert [effect["target"] for effect in queue.effects] == ["b, Hello"]


def test_of_a_log_only_warnings_and_errors_are_news_and_a_traceback_is_whole(tmp_path: Path) -> None:
    with Logs(tmp_path / "log") as logs:
        file = logs.file_of("worker")

        def news(text: str, last: bool = False) -> list[tuple[str, str]]:
            file.write(text.encode())
            file.flush()
            found = list(logs.news({7}, last))
            assert {line.child for line in found} <= {"worker"}
            return [(line.level, line.text) for line in found]

        assert news("2026-03-29T12:00:00.000001Z info    worker started     worker=a\n") == []
        assert news("2026-03-29T12:00:00.000001Z warning run failed    run_id=8\nTra") == [
            ("warning", "warning run failed run_id=8")
        ]
        assert news('ceback:\n  File "a"\n\n') == [("error", "Traceback:"), ("error", '  File "a"')]
        assert news("2026-03-29T12:00:00.000001Z warning run dead     run_id=7 x=1\n") == []
        assert news('{"timestamp": "2026", "level": "info", "event": "a"}\n') == []
        json = '{"timestamp": "2026", "level": "error", "event": "a"}'
        assert news(json) == []
        assert news("", last=True) == [("error", json)]
    assert (tmp_path / "log" / "worker.log").stat().st_mode & 0o077 == 0


def test_a_port_that_was_not_the_usual_one_is_explained_under_the_api() -> None:
    moved = "not on port 8000, which is in use; --port chooses another"
    lines = drawn(None, running=replace(RUNNING, moved=moved))
    [api] = [number for number, line in enumerate(lines) if " API " in line]
    assert lines[api + 1].strip() == moved
    assert lines[api + 1].index("not") == lines[api].index("17.2")


@pytest.mark.parametrize("app", ["rowcall_example", "store"])
def test_another_terminal_needs_the_app_whichever_it_is(app: str) -> None:
    assert replace(RUNNING, app=app).before == [f"export ROWCALL_APP={app}"]
