"""Operations: an operator's changes to many runs, each with an id, carried out by workers batch by batch."""

from rowcall.queue.operations.actions import Action
from rowcall.queue.operations.carry_out import carry_on
from rowcall.queue.operations.lists import get_operation, list_operations, refusals_page
from rowcall.queue.operations.preview import Preview, preview
from rowcall.queue.operations.request import Requested
from rowcall.queue.operations.state import ACTIVE, OperationStatus
from rowcall.queue.operations.steer import Started, continue_operation, lock_operation, start, stop
from rowcall.queue.operations.waiting import why_it_waits

__all__ = [
    "ACTIVE",
    "Action",
    "OperationStatus",
    "Preview",
    "Requested",
    "Started",
    "carry_on",
    "continue_operation",
    "get_operation",
    "list_operations",
    "lock_operation",
    "preview",
    "refusals_page",
    "start",
    "stop",
    "why_it_waits",
]
