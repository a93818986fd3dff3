"""carry_out_operation: change the runs of an operation, batch by batch."""

from __future__ import annotations

from rowcall.base.errors import OperationNotFound, Permanent
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.queue import operations
from rowcall_worker.attempt.context import Run


@CARRY_OUT_OPERATION.handler
def carry_out(run: Run) -> dict[str, int]:
    """Carry out the operation until it is finished, is waiting after its canary, or has been stopped."""
    active = True
    while active:
        try:
            with run.step() as connection:
                operation = operations.carry_on(connection, run.payload["operation_id"])
        except OperationNotFound as error:
            raise Permanent(str(error)) from error
        done = operation["changed"] + operation["refused"]
        run.progress(done / max(operation["matched"], 1), f"{done:,} runs of operation {operation['id']}")
        active = operation["status"] in operations.ACTIVE
    return {"changed": operation["changed"], "refused": operation["refused"]}
