"""The parcels' Celery app, as docs/handover.md writes it."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import worker_init

from rowcall_worker.handover import check_consumer, run_handed_over

app = Celery("parcels", broker=os.environ["ROWCALL_BROKER_URL"])
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
worker_init.connect(check_consumer)


@app.task(name="parcels.tasks.send")  # type: ignore[untyped-decorator]
def send(run_id: int, lease_no: int) -> bool:
    """Perform a run of the type parcel_send."""
    return run_handed_over(run_id, lease_no)
