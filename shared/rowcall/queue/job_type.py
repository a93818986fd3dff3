"""The job type that an app declares, with methods that enqueue its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from rowcall import job_types
from rowcall.base.database import Connection
from rowcall.queue.enqueue import Options, enqueue, enqueue_many
from rowcall.queue.views.results import Enqueued


class JobType(job_types.JobType):
    """A job type that can enqueue its runs without ROWCALL_APP, because its name need not be looked up."""

    def enqueue(
        self, connection: Connection, payload: Mapping[str, Any], *, key: str | None = None, **options: Unpack[Options]
    ) -> Enqueued:
        """Enqueue one run in the caller's transaction."""
        return enqueue(connection, self, payload, key=key, **options)

    def enqueue_many(
        self,
        connection: Connection,
        payloads: Iterable[Mapping[str, Any]],
        *,
        keys: Iterable[str | None] | None = None,
        **options: Unpack[Options],
    ) -> list[Enqueued]:
        """Enqueue many runs in the caller's transaction, all or none; the outcomes are in the order of the payloads."""
        return enqueue_many(connection, self, payloads, keys=keys, **options)
