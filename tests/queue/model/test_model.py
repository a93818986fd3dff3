"""The real queue compared with a model of it: any moves, in any order, by several actors, and by two at once.

Each example starts with runs in any state that the table allows, and continues with moves: every event of the status
machine, allowed or not.  Every answer must be the model's, and so must the table, the history and the audit log after
each move.  Rows are back-dated to let time pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rowcall.base.database import Row
from rowcall.queue import Claimed, Lease
from rowcall.status import BY_EVENT, FINAL, LIVE, Event, Status
from tests.queue.model import drawn
from tests.queue.model.anyone import OPERATOR, Asking
from tests.queue.model.connections import Connections, Made
from tests.queue.model.drawn import QUEUES, STARTS, Start, running
from tests.queue.model.operator import Cloning, Steering
from tests.queue.model.owner import MESSAGE, WORKERS, Telling, Writing, everything_under, wrong
from tests.queue.model.run import HAPPENED
from tests.queue.model.worker import Claiming, ClaimingSuspect, FinishingAndClaiming, Sweeping
from tests.queue.model.world import Move, World


def somebody_works(machine: Queue) -> bool:
    """Whether a run is running."""
    return machine.world.has(running)


class Queue(RuleBasedStateMachine):
    """One example: the queue and its model, side by side."""

    connections: ClassVar[Connections]

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.rows: dict[int, Row] = {}
        self.granted: set[tuple[int, int]] = set()
        self.retried: set[int] = set()

    @initialize(starts=STARTS)
    def begin(self, starts: list[Start]) -> None:
        self.connections.empty()
        self.world.now = now = self.connections.now()
        for place, start in enumerate(starts):
            run = start.run(now, place)
            self.connections.insert(run)
            self.world.runs[run.id] = run
            self.granted.add((run.id, run.lease_no))

    # One after the other

    @rule(move=drawn.askings() | drawn.askings_about_numbers(), at_the_same_moment=drawn.CLAIMINGS | st.none())
    def somebody_asks(self, move: Asking, at_the_same_moment: Claiming | None) -> None:
        self.make(move, *([at_the_same_moment] if at_the_same_moment else []))

    @rule(move=drawn.askings_about_numbers())
    def somebody_asks_again_after_the_runs_have_ended(self, move: Asking) -> None:
        self.make(move)
        for run in [run for run in self.world.runs.values() if run.is_unique]:
            event = Event.FORCE_CANCEL if run.status is Status.RUNNING else Event.CANCEL
            self.make(Steering(event, run.id, run.lease_no))
        self.make(move)

    @precondition(lambda machine: machine.world.has(lambda run: run.is_due(machine.world.now)))
    @rule(move=drawn.CLAIMINGS, paused=drawn.PAUSED)
    def a_worker_claims(self, move: Claiming, paused: tuple[str, ...]) -> None:
        for name in QUEUES:
            self.connections.pause(name, name in paused)
        self.world.paused = set(paused)
        self.make(move)

    @precondition(lambda machine: machine.world.has(lambda run: run.suspect and run.is_due(machine.world.now)))
    @rule(move=drawn.SUSPECT_CLAIMINGS)
    def a_worker_claims_a_suspect(self, move: ClaimingSuspect) -> None:
        self.make(move)

    @precondition(somebody_works)
    @rule(move=drawn.finishings())
    def a_worker_finishes_and_claims(self, move: FinishingAndClaiming) -> None:
        self.make(move)

    @precondition(somebody_works)
    @rule(moves=drawn.writings())
    def owners_write(self, moves: list[Writing | Telling]) -> None:
        self.make(*moves)

    @precondition(somebody_works)
    @rule(lease=drawn.leases())
    def workers_write_that_have_lost_the_lease(self, lease: Lease) -> None:
        before = self.world.copy()
        self.make(*(every for lie in wrong(lease) for every in everything_under(lie)))
        assert self.world.runs == before.runs

    @rule(moves=drawn.steerings())
    def operators_steer(self, moves: list[Steering | Cloning]) -> None:
        self.make(*moves)

    @precondition(somebody_works)
    @rule(moves=st.lists(drawn.sweepings(), min_size=1, max_size=3))
    def the_sweep_comes_by(self, moves: list[Sweeping]) -> None:
        self.make(*moves)

    @rule(asleep=st.booleans())
    def the_workers_fall_asleep_or_wake_up(self, asleep: bool) -> None:
        self.connections.sleep(asleep)
        self.world.asleep = asleep

    @rule(run_ids=drawn.run_ids())
    def time_passes(self, run_ids: set[int]) -> None:
        """Make waiting runs due and leases expire, one after the other."""
        for run in (self.world.runs[run_id] for run_id in sorted(run_ids)):
            self.world.now = now = self.connections.now()
            run.run_at = min(run.run_at, now)
            run.locked_until = run.locked_until and now
            self.connections.back_date(run)

    # Two at once

    @rule(pair=drawn.two_about_one_run(), commits=st.booleans())
    def two_want_the_same_run(self, pair: tuple[Move, Move], commits: bool) -> None:
        self.make_at_once(*pair, commits)

    @rule(pair=drawn.an_operator_behind_another(), commits=st.booleans())
    def an_operator_steers_a_run_that_is_changing(self, pair: tuple[Move, Move], commits: bool) -> None:
        self.make_at_once(*pair, commits)

    @precondition(somebody_works)
    @rule(pair=drawn.a_sweep_behind_a_heartbeat(), commits=st.booleans())
    def a_lease_is_extended_while_it_is_swept(self, pair: tuple[Writing, Sweeping], commits: bool) -> None:
        self.time_passes({pair[1].run_id})
        self.make_at_once(*pair, commits)

    @rule(first=drawn.CLAIMINGS, second=drawn.CLAIMINGS | drawn.finishings(), commits=st.booleans())
    def two_claim(self, first: Move, second: Move, commits: bool) -> None:
        self.make_at_once(first, second, commits)

    @rule(first=drawn.askings_about_numbers(), second=drawn.askings_about_numbers(), commits=st.booleans())
    def two_ask_about_the_same_numbers(self, first: Asking, second: Asking, commits: bool) -> None:
        self.make_at_once(first, second, commits)

    @rule(first=drawn.askings(), second=drawn.askings(), commits=st.booleans())
    def two_ask(self, first: Asking, second: Asking, commits: bool) -> None:
        self.make_at_once(first, second, commits)

    def make(self, *moves: Move) -> None:
        """Make moves on both sides, in one transaction: they answer alike, and both or neither wake workers."""
        self.compare(moves, self.connections.alone(*moves), self.world)
        self.tell_lanes_apart()

    def make_at_once(self, first: Move, second: Move, commits: bool) -> None:
        """Make two moves on both sides; the second starts before the first is committed or rolled back."""
        earlier, later = self.connections.at_once(first, second, commits=commits)
        before, after = self.world, self.world.copy()
        self.compare([first], earlier, after, committed=commits)
        self.world = after if commits else before.copy()
        self.world.seen = before
        self.world.locked = first.locks() | {
            run_id for run_id in before.runs if after.runs[run_id] != before.runs[run_id]
        }
        self.compare([second], later, self.world)
        self.world.seen, self.world.locked = None, set()
        self.tell_lanes_apart()

    def compare(self, moves: Sequence[Move], made: Made, world: World, *, committed: bool = True) -> None:
        world.now, world.woken = made.now, False
        for move, answer in zip(moves, made.answers, strict=True):
            expected = move.expect(world, made.now, answer)
            assert answer == expected, f"{move} returned {answer}; the model says {expected}"
            if committed:
                self.note(move, answer)
        assert made.woke == (committed and world.woken), f"{moves} should{' not' * made.woke} wake the workers"

    def note(self, move: Move, answer: Any) -> None:
        """Keep what the invariants need besides the table: no lease is granted twice, and which runs were retried."""
        claimed: Sequence[Claimed] = ()
        if isinstance(move, Claiming | FinishingAndClaiming):
            claimed = answer.claimed
        elif isinstance(move, ClaimingSuspect) and answer.claimed:
            claimed = [answer.claimed]
        for run in claimed:
            assert (run.run_id, run.lease_no) not in self.granted
            self.granted.add((run.run_id, run.lease_no))
        if isinstance(move, Steering) and move.event is Event.RETRY and isinstance(answer, dict):
            self.retried.add(move.run_id)

    def tell_lanes_apart(self) -> None:
        """Give runs of two queues different times if they are due at the same time: their order is undefined."""
        due: dict[tuple[int, datetime], str] = {}
        for run in self.world.runs.values():
            if run.is_due(self.world.now) and run.queue != due.setdefault((run.priority, run.run_at), run.queue):
                run.run_at = self.connections.now()
                self.connections.back_date(run)

    @invariant()
    def the_table_is_as_the_model_says(self) -> None:
        before, self.rows = self.rows, self.connections.rows()
        assert self.rows == {run.id: vars(run) for run in self.world.runs.values()}
        for row in self.rows.values():
            assert (row["status"] == Status.RUNNING) == (row["locked_by"] is not None)
            assert (row["status"] in FINAL) == (row["finished_at"] is not None)
            assert 0 <= row["attempts"] <= row["max_attempts"]
        for run_id, old in before.items():
            row = self.rows[run_id]
            assert row["lease_no"] >= old["lease_no"]
            assert old["status"] in LIVE or row["status"] == old["status"] or run_id in self.retried
        self.retried.clear()

    @invariant()
    def the_history_has_the_attempts_that_did_not_succeed_and_no_other(self) -> None:
        kept = sorted(self.world.attempts, key=lambda attempt: (attempt["run_id"], attempt["lease_no"]))
        assert self.connections.attempts() == kept

    @invariant()
    def every_change_by_an_operator_is_audited_and_nothing_else(self) -> None:
        assert self.connections.audit() == self.world.audit


# For reproducible examples, draw groups, each from its own seed: this many, and more if a transition has not happened.
# Hypothesis also draws constants of the modules that happen to be loaded, so the examples that it takes can differ.
GROUPS = 10
GROUPS_MOST = 60
EXAMPLES_OF_A_GROUP = 9


# After a failure, Hypothesis shrinks the example before it prints it, and that takes longer than the test.
@pytest.mark.timeout(600)
def test_the_queue_does_what_the_model_says(module_url: str) -> None:
    HAPPENED.clear()
    with closing(Connections(module_url, OPERATOR, *WORKERS, MESSAGE)) as Queue.connections:
        if settings().derandomize:
            group = settings(max_examples=EXAMPLES_OF_A_GROUP, stateful_step_count=10)
            for number in range(GROUPS_MOST):
                if number >= GROUPS and not never():
                    break
                run_state_machine_as_test(seed(number)(Queue), settings=group)
        else:
            run_state_machine_as_test(Queue, settings=settings())
    assert not never(), "the examples have become too few, or too unrealistic"


def never() -> set[tuple[Event, Status, Status]]:
    """Return the transitions that have not happened yet."""
    return {
        (event, source, target)
        for event, transition in BY_EVENT.items()
        for source, target in product(transition.sources or (Status.QUEUED,), transition.targets)
        if not HAPPENED[event, source, target]
    }
