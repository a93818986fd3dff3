"""`rowcall runs show`: one run, formatted for people, with what went wrong first."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import click

from rowcall import effects, queue
from rowcall.base.database import Row
from rowcall.base.durations import duration_words, relative
from rowcall.cli.parameters import Duration
from rowcall.cli.runs.tail import show_end
from rowcall.cli.runs.wait import UNTIL_IT_ENDS, status_at_end
from rowcall.cli.session import command_transaction, held_server
from rowcall.cli.terminal.output import show_json, shown, wrapped
from rowcall.cli.terminal.table import Table, table_options
from rowcall.definitions import clock
from rowcall.queue.claims.holders import counts, holder_words
from rowcall.status import FINAL, Status

# How many lines of its log are shown with a run.
LOG_LINES = 10

# The lease_no is the number in the run's log, and a retry does not reset it.  The error comes last, because it may be
# long: other columns are padded to their longest cell.
ENDED = ("lease_no", "outcome", "worker", "ended_at")


@click.command("show")
@click.argument("run_id", type=int, metavar="RUN_ID", required=False)
@click.option(
    "--wait",
    type=Duration("30s or '5 minutes'", in_seconds=True),
    is_flag=False,
    flag_value=UNTIL_IT_ENDS,
    help="First wait until the run ends, at most this long, such as 30s; a number alone is seconds.  [without a value:"
    " no limit]",
)
@table_options
def show_command(run_id: int | None, wait: timedelta | None, table: Table) -> None:
    """Show one run: its error if it failed, its fields, its attempts that did not succeed, and the end of its log.

    With --wait, the exit code is 0 if the run has succeeded, and 1 if it has not.
    """
    if run_id is None:
        hint = None if wait is None else "--wait took the number after it: put the id before --wait"
        raise click.MissingParameter(hint, click.get_current_context(), param_hint="'RUN_ID'", param_type="argument")
    if wait is None:
        _show(run_id, table)
        return
    with held_server():
        status = status_at_end(run_id, wait)
        _show(run_id, table)
    if status != Status.SUCCEEDED:
        if status not in FINAL:
            click.echo(f"run {run_id} has not ended within {duration_words(wait)}: it is {status}", err=True)
        sys.exit(1)


def _show(run_id: int, table: Table) -> None:
    with command_transaction() as connection:
        run, attempts, now = queue.get_run(connection, run_id), queue.attempts_of(connection, run_id), clock(connection)
        performed = effects.effects_of(connection, run_id)
        gone = "erased" if run["pruned_at"] and queue.was_erased(connection, run_id) else "pruned"
        log = queue.log_end(connection, run_id, LOG_LINES)
    if table.as_json:
        show_json({**run, "attempts_ended": attempts, "log_end": log})
        return
    failed = run["last_error"] is not None and run["status"] != Status.SUCCEEDED
    click.echo(f"run {run['id']}  {run['job_type']}  {run['status']}")
    if failed:
        earlier = "before this attempt: " if run["status"] == Status.RUNNING else ""
        click.echo(click.style(wrapped(f"{earlier}{error_of(run)}"), fg="red"))
    for sentence in _about_what_is_left(run, gone):
        click.echo(sentence)
    click.echo()
    told = {**dict(_fields(run, attempts, now)), **_effects(run_id, performed)}
    width = max(map(len, told))
    for name, value in told.items():
        click.echo(f"{name.ljust(width)}  {value}")
    if failed and run["last_stack"]:
        click.echo()
        for line in str(run["last_stack"]).rstrip().splitlines():
            # The lines of stack frames are printed unchanged; the exception's message is wrapped as a sentence.
            click.echo(shown(line) if line.startswith(" ") else wrapped(shown(line)))
    if attempts:
        click.echo()
        _show_attempts(_numbered(attempts, _before(run, attempts)), now, table)
    show_end(log, run_id)


def _about_what_is_left(run: Row, gone: str) -> Iterator[str]:
    if run["pruned_at"]:
        stays = "" if run["archived"] else " Its status stays until `expire_keys` deletes the run."
        yield f"Its details were {gone} at {shown(run['pruned_at'])}: payload, result, errors, attempts and log.{stays}"
    if run["archived"]:
        yield "The run is in the archive: it can be read and cloned."


def _show_attempts(attempts: Sequence[Row], now: datetime, table: Table) -> None:
    # Only attempts in child processes have forensics.
    forensics = ("forensics",) if any(attempt["forensics"] for attempt in attempts) else ()
    rows = [{**one, "error": error_of(one, "error")} for one in attempts]
    table.show(rows, (*ENDED, *forensics, "error"), now, spare=("worker", "ended_at"))


def error_of(row: Row, field: str = "last_error") -> str | None:
    """Return the exception's class and message, as in a traceback, because a message alone may say little."""
    error, error_type = row[field], row["error_type"]
    if error is None:
        return None
    return shown(f"{error_type}: {error}" if error_type else error)


def _fields(run: Row, attempts: Sequence[Row], now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the facts about a run as name and text, in the order of its life; `--json` has every field."""

    def when(name: str) -> str:
        return f"{shown(run[name])} ({relative(run[name], now)})"

    for name in ("payload", "result", "progress", "natural_key", "idempotency_key", "definition_id", "scheduled_for"):
        if run[name] is not None:
            yield name, shown(run[name])
    yield "queue", f"{run['queue']}, priority {run['priority']}" if run["priority"] else shown(run["queue"])
    yield "attempts", _counted(run, attempts)
    yield "created_at", when("created_at") + (f" by {shown(run['created_by'])}" if run["created_by"] else "")
    if run["trace_parent"]:
        yield "trace", run["trace_parent"].split("-")[1]
    yield "run_at", when("run_at")
    for name in ("started_at", "finished_at", "cancel_requested_at"):
        if run[name]:
            yield name, when(name)
    if run["locked_by"]:
        yield (
            "locked_by",
            f"{shown(holder_words(run['locked_by']))}, lease {run['lease_no']} until {when('locked_until')}",
        )


def _effects(run_id: int, performed: Sequence[Row]) -> dict[str, str]:
    """How many effects the run has in each state, and the command that lists them."""
    counts = Counter(effect["state"] for effect in performed)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return {"effects": f"{states}; `rowcall effects list --run {run_id}`"} if states else {}


def _counted(run: Row, attempts: Sequence[Row]) -> str:
    """Say how many attempts were made since the last retry, which restarts the count, and how many before it."""
    counted = f"{run['attempts']} of {run['max_attempts']}"
    before = _before(run, attempts)
    return f"{counted} since the last retry, {before} before it" if before > 0 else counted


def _before(run: Row, attempts: Sequence[Row]) -> int:
    """How many attempts were made before the last retry."""
    # `attempts` does not contain an attempt that is running or has succeeded.
    made = sum(map(counts, attempts))
    before: int = made + (run["status"] in (Status.RUNNING, Status.SUCCEEDED)) - run["attempts"]
    return before


def _numbered(attempts: Sequence[Row], before: int) -> list[Row]:
    """Mark the attempts before the last retry, because only those after it count towards the maximum."""
    numbered = []
    for attempt in attempts:
        numbered.append({**attempt, "lease_no": f"{attempt['lease_no']} before retry"} if before > 0 else attempt)
        before -= counts(attempt)
    return numbered
