"""The view: services, runs, effects, what fails on purpose, and what to do next.  It fits the terminal's height."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from rowcall.cli.up.live.rows import counts, effects_table, grid, runs_table
from rowcall.cli.up.live.snapshot import NEWEST
from rowcall.cli.up.live.state import LOGS, State
from rowcall.cli.up.processes import QUEUE
from rowcall.cli.up.reports import API, POSTGRES, SERVICES, WORKER
from rowcall.status import Status

# On a terminal with fewer lines, there are no blank lines.
ROOMY = 28
# More rows would be too many to read at a glance.
RUNS_MOST = 12
EFFECTS_MOST = 6

READY, STARTING, AWAY = ("●", "green"), ("○", "dim"), ("●", "red")


class View:
    """Renders the current state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines; the lists of runs and effects get the remaining lines."""
        # The last column stays empty, because some terminals would move to the next line.
        narrower = options.update_width(max(options.max_width - 1, 1))
        roomy = options.size.height - self._state.room_above >= ROOMY
        head = [_title(self._state), _services(self._state)]
        tail = [_announced(self._state), _next(self._state)]
        fixed = _spaced([*head, Text("Runs"), Text("Effects"), *tail], roomy)
        used = len(console.render_lines(fixed, narrower, pad=False))
        lists = _lists(self._state, options.size.height - 1 - self._state.room_above - used)
        yield from console.render(_spaced([*head, *lists, *tail], roomy), narrower)

    def result(self) -> RenderableType:
        """What stays readable after the end: runs and effects, but no commands that need a service."""
        return _spaced([*_lists(self._state, RUNS_MOST + EFFECTS_MOST), _announced(self._state)], roomy=True)


def _spaced(blocks: Sequence[RenderableType | None], roomy: bool) -> Group:
    """The blocks that are not None, with a blank line between them if there is room."""
    shown: list[RenderableType] = []
    for block in blocks:
        if block is not None:
            shown += [Text(), block] if shown and roomy else [block]
    return Group(*shown)


def _title(state: State) -> RenderableType:
    table = grid(0, 2)
    is_up = state.running is not None
    table.add_row(
        Text("Rowcall is up." if is_up else "Rowcall is starting ...", "bold"), Text("Ctrl-C stops everything.", "dim")
    )
    return table


def _services(state: State) -> RenderableType:
    table = grid(2, 3)
    for name in SERVICES:
        detail, mark = _service(state, name)
        table.add_row(Text(*mark), Text(name, "bold"), detail)
        if name == API and state.running and state.running.moved:
            table.add_row("", "", Text(state.running.moved, "yellow"))
    if state.running and state.running.demo:
        table.add_row("", Text("demo", "bold"), Text(state.running.demo.summary))
    table.add_row(
        "", Text("files", "bold"), Text(f"logs in {state.home / LOGS}, everything else in {state.home}", "dim")
    )
    return table


def _service(state: State, name: str) -> tuple[Text, tuple[str, str]]:
    """What a service does now, and its mark."""
    if name not in state.ready:
        return Text("starting", "dim"), STARTING
    if state.away and name == POSTGRES:
        waited = f" for {int(state.reader.silent_for)} s" if state.reader else ""
        return Text(f"unavailable{waited}: {state.away}", "red"), AWAY
    if state.away and name == WORKER:
        return Text("waiting for the database", "yellow"), READY
    return Text(_detail(state, name)), READY


def _detail(state: State, name: str) -> str:
    if name == POSTGRES:
        place = "the database of DATABASE_URL" if state.is_guest else f"data in {state.home}"
        return f"{state.ready[name].partition(' ')[0]}, {place}"
    if name == API:
        return f"{state.ready[name]}   a key for it is in {state.home / 'api_key'}"
    running = state.snapshot.counts.get(Status.RUNNING, 0) if state.snapshot else 0
    busy = f"running {running}" if running else "waiting for runs"
    return f"{busy}; serves only queue {QUEUE}, not your own" if state.is_guest else busy


def _lists(state: State, room: int) -> list[RenderableType]:
    """The latest runs and effects that fit; effects get a third of the lines, or what the runs leave."""
    snapshot = state.snapshot
    if snapshot is None:
        return []
    runs_room = min(len(snapshot.runs), RUNS_MOST, max(room - min(len(snapshot.effects), max(room // 3, 1)), 1))
    effects_room = max(min(len(snapshot.effects), EFFECTS_MOST, room - runs_room), 0)
    by_status = {Status(status): number for status, number in snapshot.counts.items()}
    newest = f" (the newest {NEWEST:,})" if sum(by_status.values()) >= NEWEST else ""
    title = Text.assemble(("Runs", "bold"), newest, "   ", counts(by_status), overflow="ellipsis", no_wrap=True)
    effects = Text.assemble(("Effects", "bold"), "" if snapshot.effects else ("   none yet", "dim"))
    lists: list[RenderableType] = [
        Group(title, *([runs_table(snapshot.runs[:runs_room], state.announced)] if snapshot.runs else []))
    ]
    if effects_room:
        lists.append(Group(effects, effects_table(snapshot.effects[:effects_room])))
    elif not snapshot.effects:
        lists.append(effects)
    return lists


def _announced(state: State) -> RenderableType | None:
    """The runs that have failed on purpose."""
    lines = [Text(f"Run {run_id}: {sentence}", "yellow") for run_id, sentence in state.announced.items()]
    return Group(*lines) if lines else None


def _next(state: State) -> RenderableType | None:
    if state.running is None:
        return None
    steps = [Text(f"  {step}", "cyan", overflow="fold") for step in state.next_steps()]
    return Group(Text("Next, in another terminal in this folder:", "bold"), *steps)
