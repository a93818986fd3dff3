"""The queue: every change of a run, each as one readable SQL statement.

All functions take the caller's connection first, run in its transaction, and never commit.
"""

from shared.queue.bulk import Action, Bulk, bulk
from shared.queue.cancel import ask_to_cancel, call_off, cancel, force_cancel
from shared.queue.claim import Claimed, Limited, Met, Wanted, claim, finish_and_claim
from shared.queue.claim_limited import claim_limited
from shared.queue.clone import clone
from shared.queue.enqueue import Enqueued, enqueue, enqueue_many
from shared.queue.explain import Condition, Explained, explain
from shared.queue.filters import Filter
from shared.queue.finish import Done, Ending, Failure, cancelled, fail, give_up, hand_back, release, snooze, succeed
from shared.queue.inspect import attempts_of, get_run, version_of
from shared.queue.lease import Held, expire, heartbeat, note_progress, saved
from shared.queue.lists import Page, count_runs, list_runs
from shared.queue.operate import open_to, retry, run_now
from shared.queue.queues import limit_queue, list_queues, pause_queue, resume_queue

__all__ = [
    "Action",
    "Bulk",
    "Claimed",
    "Condition",
    "Done",
    "Ending",
    "Enqueued",
    "Explained",
    "Failure",
    "Filter",
    "Held",
    "Limited",
    "Met",
    "Page",
    "Wanted",
    "ask_to_cancel",
    "attempts_of",
    "bulk",
    "call_off",
    "cancel",
    "cancelled",
    "claim",
    "claim_limited",
    "clone",
    "count_runs",
    "enqueue",
    "enqueue_many",
    "expire",
    "explain",
    "fail",
    "finish_and_claim",
    "force_cancel",
    "get_run",
    "give_up",
    "hand_back",
    "heartbeat",
    "limit_queue",
    "list_queues",
    "list_runs",
    "note_progress",
    "open_to",
    "pause_queue",
    "release",
    "resume_queue",
    "retry",
    "run_now",
    "saved",
    "snooze",
    "succeed",
    "version_of",
]
