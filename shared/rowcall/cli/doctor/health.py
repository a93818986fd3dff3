"""What has gone wrong lately and is waiting for an operator, and what keeps vacuum from Rowcall's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from importlib.util import find_spec
from pkgutil import resolve_name

from rowcall import definitions, effects
from rowcall.base.database import PgConnection, Row, fetch_all
from rowcall.base.durations import duration_words
from rowcall.base.errors import RowcallError
from rowcall.cli import extras
from rowcall.cli.doctor.finding import Finding
from rowcall.cli.terminal.output import shown
from rowcall.effects.kinds import TABLES
from rowcall.job_types.catalogue import Catalogue
from rowcall.job_types.housekeeping import PRUNE_RUNS
from rowcall.queue.retention.prune import policy_of
from rowcall.queue.vacuum import OLD, OLD_XIDS, bloated, holding_back, sees_all_sessions
from rowcall.queue.views.stats import EXAMINED_MOST, dead_lately
from rowcall.status import Event, Status, sources_of

# Counting stops here, so that it costs the same for any backlog.
COUNTED_MOST = 1000

# How many of these runs are named.
NAMED_MOST = 10

# The index {table}_open; open intents are few, because only runs in flight have one, and those that ended with one.
LEFT_OPEN = " UNION ALL ".join(
    f"""
SELECT {"kind" if table.shared else f"'{table.name}' AS kind"}, count(*) AS effects,
    (array_agg(run.id ORDER BY run.id))[:{NAMED_MOST + 1}] AS runs
FROM rowcall.{table.name} AS effect
JOIN rowcall.job_runs AS run ON run.id = effect.run_id AND run.status IN ('{Status.DEAD}', '{Status.CANCELLED}')
WHERE effect.state = 'intent' GROUP BY 1"""
    for table in TABLES
)

# The dead runs that a retry would let die again; the index {table}_open.
UNRESOLVED = " UNION ".join(
    f"""
SELECT run.id FROM rowcall.{table.name} AS effect
JOIN rowcall.job_runs AS run ON run.id = effect.run_id AND run.status = '{Status.DEAD}' AND run.pruned_at IS NULL
WHERE effect.state = 'unknown'"""
    for table in TABLES
)

# Queues that are paused, or limited to 0, in which due runs wait, counted up to a limit; the index job_runs_live.
PAUSED = f"""
SELECT queues.name, queues.paused_at, due.runs FROM rowcall.queues CROSS JOIN LATERAL (
    SELECT count(*) AS runs FROM (
        SELECT FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = queues.name AND run_at <= now() AND status IN {sources_of(Event.CLAIM)}
        LIMIT {COUNTED_MOST}
    ) AS first
) AS due WHERE (queues.paused_at IS NOT NULL OR queues.max_running = 0) AND due.runs > 0 ORDER BY queues.name
"""

# If a type has at least this many dead runs, one command for each of them is too much typing.
MANY = 10


def handlers(catalogue: Catalogue, app: str | None) -> Finding:
    """Whether all handlers can be imported, and each job type has one."""
    try:
        resolve_name("rowcall_worker.handlers:load_handlers")(catalogue, app)
    except ModuleNotFoundError as error:
        if not extras.is_missing(error):
            return Finding("handlers", False, f"the handlers cannot be imported: {error}")
        return Finding("handlers", True, "not examined: the worker extra is not installed here")
    except RowcallError as error:
        return Finding("handlers", False, str(error))
    return Finding("handlers", True, "every job type has a handler")


def dead(connection: PgConnection) -> Finding:
    """Whether runs died in the last day."""
    rows = dead_lately(connection)
    if not rows:
        examined = f"the latest {EXAMINED_MOST:,} failed attempts were examined"
        return Finding("dead runs", True, f"no run died in the last day ({examined})")
    return Finding(
        "dead runs",
        False,
        f"{_counted({row['job_type']: row['runs'] for row in rows})} died in the last day:"
        " `rowcall runs list --status dead` shows them, and `rowcall runs retry ID` runs one again"
        + _together(rows)
        + _unresolved(fetch_all(connection, f"{UNRESOLVED} ORDER BY id LIMIT {NAMED_MOST + 1}")),
    )


def _together(rows: Sequence[Row]) -> str:
    """Name the command that retries many runs of the type that died most often."""
    most = rows[0]
    if most["runs"] < MANY:
        return ""
    command = f"rowcall runs retry --status dead --type {most['job_type']} --canary"
    return f", and `{command}` retries many: one run first, and the others after `rowcall operations continue`"


def _unresolved(runs: Sequence[Row]) -> str:
    """Name the runs whose effect must be resolved before a retry."""
    if not runs:
        return ""
    first = f"first resolve the unknown effects of {_named([run['id'] for run in runs])}"
    return f"; {first} (`rowcall effects list --state unknown`), or the runs will die again"


def _named(runs: Sequence[int]) -> str:
    named = ", ".join(map(str, runs[:NAMED_MOST])) + (", ..." if len(runs) > NAMED_MOST else "")
    return f"{'run' if len(runs) == 1 else 'runs'} {named}"


def unknown_effects(connection: PgConnection) -> Finding:
    """Whether effects are waiting for an operator."""
    counts = {kind: count for kind, count in effects.count_unknown(connection).items() if count}
    if not counts:
        return Finding("effects", True, "no effect has an unknown outcome")
    return Finding(
        "effects",
        False,
        f"unknown outcomes: {_counted(counts)}; `rowcall effects list --state unknown` shows them; find out what"
        " happened, and record it with `rowcall effects resolve`",
    )


def open_effects(connection: PgConnection) -> Finding:
    """Check that no run died or was cancelled before the outcome of an effect was known."""
    rows = fetch_all(connection, LEFT_OPEN)
    if not rows:
        return Finding("open effects", True, "no dead or cancelled run has an effect that may have happened")
    runs = sorted({run for row in rows for run in row["runs"]})
    return Finding(
        "open effects",
        False,
        f"effects of dead or cancelled runs ({_named(runs)}) may have happened:"
        f" {_counted({row['kind']: row['effects'] for row in rows})}; `rowcall effects list --state intent` shows them;"
        " find out what happened, and record it with `rowcall effects resolve`, or run `rowcall runs retry ID`, which"
        " follows the policy of the kind",
    )


def paused(connection: PgConnection) -> Finding:
    """Whether due runs are waiting in a queue that was paused or limited to 0, perhaps long ago."""
    rows = fetch_all(connection, PAUSED)
    if not rows:
        return Finding("paused queues", True, "no due run is waiting in a paused queue, or in one that is limited to 0")
    sentences = "; ".join(
        f"{row['runs'] if row['runs'] < COUNTED_MOST else f'{COUNTED_MOST} or more'} in queue {row['name']},"
        f" {_held_up(row)}"
        for row in rows
    )
    return Finding("paused queues", False, f"due runs are waiting: {sentences}")


def _held_up(queue: Row) -> str:
    """Say what holds up a queue, and which command ends it."""
    if queue["paused_at"] is None:
        return f"which is limited to 0 running runs (`rowcall queues limit {queue['name']} --none`)"
    return f"which has been paused since {shown(queue['paused_at'])} (`rowcall queues resume {queue['name']}`)"


APPLY = "run `rowcall migrate`, or `rowcall definitions apply`"


def broken(connection: PgConnection, catalogue: Catalogue) -> Finding:
    """Whether this process can process the nominal times of each definition."""
    rows = {row["name"]: row for row in definitions.list_definitions(connection)}
    if missing := sorted(catalogue.definitions.keys() - rows):
        named = ", ".join(missing[:NAMED_MOST]) + (", ..." if len(missing) > NAMED_MOST else "")
        them = "it" if len(missing) == 1 else "them"
        return Finding(
            "definitions", False, f"the code declares {named}, but the database does not have {them}: {APPLY}"
        )
    wrong = {name: problem for name, row in rows.items() if (problem := definitions.problem_of(row, catalogue))}
    if not wrong:
        return Finding("definitions", True, "the nominal times of all definitions can be processed here")
    sentences = "; ".join(f"{name}: {problem}" for name, problem in wrong.items())
    return Finding("definitions", False, f"the nominal times of some definitions cannot be processed here: {sentences}")


def bloat(connection: PgConnection) -> Finding:
    """Whether vacuum keeps up with Rowcall's tables."""
    rows = bloated(connection)
    if not rows:
        return Finding("tables", True, "no table has more than 50,000 dead rows and more dead rows than live rows")
    tables = ", ".join(f"{row['name']} ({row['dead']:,} dead rows, {row['live']:,} live)" for row in rows)
    return Finding(
        "tables",
        False,
        f"vacuum is not keeping up with {tables}: check the finding `vacuum`, and the tables' autovacuum settings",
    )


def holding(connection: PgConnection, older: timedelta = OLD, xids: int = OLD_XIDS) -> Finding:
    """Whether something keeps vacuum from removing dead rows."""
    rows = holding_back(connection, older, xids)
    if not rows:
        hidden = "; sessions of other roles are hidden from this role, which lacks pg_read_all_stats"
        seen = "" if sees_all_sessions(connection) else hidden
        return Finding("vacuum", True, f"no old transaction or replication slot holds vacuum back{seen}")
    return Finding("vacuum", False, "; ".join(map(_held, rows)))


def parquet(connection: PgConnection) -> Iterator[Finding]:
    """Find a policy that exports months as Parquet where that cannot be written."""
    try:
        policy = policy_of(connection, PRUNE_RUNS.name)
    except RowcallError:
        return  # the finding about definitions says why it is invalid
    if policy["export_archive"] == "parquet" and not find_spec("pyarrow"):
        yield Finding(
            "archive",
            False,
            'the policy of prune_runs has export_archive = "parquet", but pyarrow is not installed here: run `pip'
            " install 'rowcall[parquet]'` where a worker serves the queue maintenance, or choose \"csv\"; until then,"
            " months stay in the archive table",
        )


def examine_health(connection: PgConnection, catalogue: Catalogue | None) -> Iterator[Finding]:
    """Run the checks in this file that need the database."""
    yield paused(connection)
    yield dead(connection)
    yield unknown_effects(connection)
    yield open_effects(connection)
    if catalogue is not None:
        yield broken(connection, catalogue)
    yield from parquet(connection)
    yield bloat(connection)
    yield holding(connection)


def _held(row: Row) -> str:
    since = f" for {duration_words(row['since'])}" if row["since"] else ""
    return f"{row['who']} has held vacuum back{since}, so dead rows stay and claims get slower: {row['remedy']}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in counts.items())
