"""The queue: every change of a run, each as one readable SQL statement.

All functions take the caller's connection first, run in its transaction, and never commit.
"""

from rowcall.queue.batch import BATCH_MOST, BatchRun, enqueue_batch
from rowcall.queue.cancel import ask_to_cancel, cancel, cancel_any, force_cancel
from rowcall.queue.claims.claim import claim
from rowcall.queue.claims.claim_limited import claim_limited
from rowcall.queue.claims.exchange import exchange
from rowcall.queue.claims.handover import Begun, begin, give_back, hand_over, whose
from rowcall.queue.claims.request import Claimed, ClaimRequest, ClaimResult, Limited
from rowcall.queue.claims.stranded import held
from rowcall.queue.claims.suspects import Suspect, claim_suspect
from rowcall.queue.claims.sweep import Swept, sweep
from rowcall.queue.clone import clone
from rowcall.queue.enqueue import enqueue, enqueue_many
from rowcall.queue.faults import faults_of
from rowcall.queue.finish import Done, Failure, cancelled, fail, give_up, release, snooze, succeed, unclaim
from rowcall.queue.lease import (
    Lease,
    LeaseRenewal,
    expire,
    heartbeat,
    owned,
    renew,
    save,
    saved,
    show_progress,
    unlocked,
)
from rowcall.queue.operate import allowed_events, enqueue_as, reschedule, retry, run_now
from rowcall.queue.queues import has_queue, limit_queue, list_queues, pause_queue, remove_queue, resume_queue
from rowcall.queue.run_log import LogLine, write_log
from rowcall.queue.views.explain import Condition, Explained, explain
from rowcall.queue.views.filters import Filter, limit_searches
from rowcall.queue.views.inspect import attempts_of, attempts_page, get_run, states_of, version_of, was_erased
from rowcall.queue.views.lists import Page, count_runs, list_runs
from rowcall.queue.views.results import Enqueued
from rowcall.queue.views.run_log import left_out, log_end, log_page

__all__ = [
    "BATCH_MOST",
    "BatchRun",
    "Begun",
    "ClaimRequest",
    "ClaimResult",
    "Claimed",
    "Condition",
    "Done",
    "Enqueued",
    "Explained",
    "Failure",
    "Filter",
    "Lease",
    "LeaseRenewal",
    "Limited",
    "LogLine",
    "Page",
    "Suspect",
    "Swept",
    "allowed_events",
    "ask_to_cancel",
    "attempts_of",
    "attempts_page",
    "begin",
    "cancel",
    "cancel_any",
    "cancelled",
    "claim",
    "claim_limited",
    "claim_suspect",
    "clone",
    "count_runs",
    "enqueue",
    "enqueue_as",
    "enqueue_batch",
    "enqueue_many",
    "exchange",
    "expire",
    "explain",
    "fail",
    "faults_of",
    "force_cancel",
    "get_run",
    "give_back",
    "give_up",
    "hand_over",
    "has_queue",
    "heartbeat",
    "held",
    "left_out",
    "limit_queue",
    "limit_searches",
    "list_queues",
    "list_runs",
    "log_end",
    "log_page",
    "owned",
    "pause_queue",
    "release",
    "remove_queue",
    "renew",
    "reschedule",
    "resume_queue",
    "retry",
    "run_now",
    "save",
    "saved",
    "show_progress",
    "snooze",
    "states_of",
    "succeed",
    "sweep",
    "unclaim",
    "unlocked",
    "version_of",
    "was_erased",
    "whose",
    "write_log",
]
