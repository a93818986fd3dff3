"""Run now: enqueue a run of a definition in addition to its schedule, for an operator."""

from __future__ import annotations

from rowcall.access.audit import Operator, record
from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import NaturalKeyConflict
from rowcall.definitions.content import Content
from rowcall.definitions.store import locked_definition
from rowcall.definitions.tick import clock
from rowcall.job_types import Catalogue
from rowcall.queue.enqueue import enqueue_prepared
from rowcall.queue.keys.fingerprint import fingerprint_of
from rowcall.queue.keys.holders import Holder, checked_key, remember
from rowcall.queue.views.results import Enqueued

SET_DEFINITION = "UPDATE rowcall.job_runs SET definition_id = %(definition_id)s WHERE id = %(run_id)s"


def run_now(
    connection: Connection, name: str, catalogue: Catalogue, operator: Operator, key: str | None = None
) -> Enqueued:
    """Enqueue one run as if now were a nominal time.

    If the payload depends on the time, the natural key applies, so that no work is done twice for one day.  With a key,
    the caller can repeat the request, even at another time.
    """
    row = locked_definition(connection, name)
    content = Content.of(row)
    job_type = catalogue[content.job_type]
    options = {
        **content.options(job_type),
        "run_at": None,
        "created_by": operator.who,
        "key_owner": operator.key_owner,
    }
    run = content.prepared(job_type, clock(connection))
    if key is not None:
        same = fingerprint_of(f"run now of definition {row['id']}", {}, {})
        run = run._replace(keys=run.keys._replace(key=checked_key(key), request_fingerprint=same))
    try:
        outcome = enqueue_prepared(connection, [run], options)[0]
    except NaturalKeyConflict as conflict:
        # The other run may differ, for example in priority, but it is about the same thing.
        outcome = Enqueued(conflict.run_id, replayed=True)
        if run.keys.key is not None:
            kept = {run.keys.key: Holder(conflict.run_id, run.keys.request_fingerprint)}
            remember(connection, operator.key_owner, kept)
    if not outcome.replayed:
        fetch_all(connection, SET_DEFINITION, {"definition_id": row["id"], "run_id": outcome.run_id})
    record(connection, operator.who, "run now", "definition", row["id"], None, vars(outcome), operator.request_id)
    return outcome
