"""The mutants.  Each takes one guard from the queue, or one thing that an event does to the row.

What the table's own CHECKs and keys guard a second time is here as well: then it is they that a test sees at work.
Left out is what no test can tell from the original:

- `status` in an owner's statement and where a lease runs out: the CHECK lease_iff_running says that who has a locked_by
  or a locked_until is running.
- `id = ANY(...)` where many leases are written at once: it finds the rows, and the lease's key, which holds the id,
  decides.
- the inner LIMIT of the claim: it spares work, and the outer one decides.
- what is due, in the tick: it spares work, and nothing is decided of what has not come.
- `status` where the claim ends leases: one statement changes a row only once, and its claim comes first.
"""

from __future__ import annotations

from rowcall.status import Event
from tests.mutants.mutant import Mutant

QUEUE = "shared/rowcall/queue/"


def at(file: str, place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of one place: what goes wrong, what stands there, and what stands there instead."""
    return [Mutant(name, QUEUE + file, place, stands, instead) for name, stands, instead in changes]


# What the claims of queues with and without a limit say alike.
BOTH_CLAIMS = (("claim.py", "claim_sql", ""), ("claim_limited.py", "CLAIM_LIMITED", "under a limit "))

CLAIM = [
    *(
        mutant
        for file, place, where in BOTH_CLAIMS
        for mutant in at(
            file,
            place,
            (f"{where}queues that were not named are served", "lanes.queue = ANY(%(queues)s::text[])", "true"),
            (f"{where}a paused queue is served", " AND queues.paused_at IS NULL", ""),
            (f"{where}a queue that goes on is left alone", "queues.paused_at IS NULL", "queues.name IS NULL"),
            (f"{where}another queue's row counts", "ON queues.name = lanes.queue", "ON true"),
            (f"{where}a lane due at this very moment waits", "lanes.run_at <= now()", "lanes.run_at < now()"),
            (f"{where}a type's own limit does not count", "(%(declared)s::jsonb ->> lanes.queue)::integer", "NULL"),
            (f"{where}a queue's own limit does not count", "least(queues.max_running, ", "least(NULL, "),
            (f"{where}what is ended is claimed as well", " WHERE status IN {sources_of(Event.CLAIM)}))", "))"),
            (f"{where}a lease ended by a claim is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
            (f"{where}a lease that ran out is another's too", "ON seen.id = expired.id", "ON true"),
            (
                f"{where}a worker begins with the less urgent",
                "FROM expired\n    ORDER BY priority, run_at, id",
                "FROM expired\n    ORDER BY id",
            ),
        )
    ),
    *at(
        "claim.py",
        "claim_sql",
        ("the urgent wait behind the longest due", "ORDER BY lanes.priority, lanes.run_at", "ORDER BY lanes.run_at"),
        ("a queue may starve another", "ORDER BY lanes.priority, lanes.run_at", "ORDER BY lanes.priority"),
        (
            "runs not due are claimed",
            "priority = due_lanes.priority AND run_at <= now()",
            "priority = due_lanes.priority",
        ),
        ("within a queue the first asked for goes first", "ORDER BY run_at, id\n", "ORDER BY id\n"),
        ("within a queue the last due goes first", "ORDER BY run_at, id\n", "ORDER BY run_at DESC, id\n"),
        ("claims wait for each other", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        ("claims lock nothing", "FOR UPDATE SKIP LOCKED", ""),
        ("each queue fills a batch of its own", "LIMIT %(limit)s\n)", ")"),
        ("an ordinary claim takes no notice of limits", "WHERE due_lanes.max_running IS NULL", ""),
        (
            "what is most urgent and limited is not told first",
            "SELECT max_running IS NOT NULL FROM",
            "SELECT false FROM",
        ),
        ("what is limited is not told of", "EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL)", "false"),
    ),
    *at(
        "claim.py",
        "CLAIMABLE",
        ("running runs take others' places", "status IN {sources_of(Event.CLAIM)} AND attempts", "attempts"),
        ("runs without attempts left are claimed", "AND attempts < max_attempts", ""),
        ("unknown types are claimed", "AND job_type = ANY(%(job_types)s::text[])", ""),
    ),
    *at("claim.py", "LEASE_IS_OVER", ("a claim ends living leases", " AND locked_until < now()", "")),
    *at(
        "claim.py",
        "CLAIMED",
        ("a claim does not count the attempt", "run.attempts + 1", "run.attempts"),
        ("a claim opens the old lease again", "run.lease_no + 1", "run.lease_no"),
        ("every type has the lease of one", "->> run.job_type)", "->> 'noop')"),
        ("an attempt does not say when it began", "started_at = now(), ", ""),
        ("an attempt begins with the last one's progress", " - '{{share,note}}'::text[]", ""),
        ("what the last attempt saved is lost", "nullif(run.progress - '{{share,note}}'::text[], '{{}}')", "NULL"),
    ),
    *at(
        "claim.py",
        "FINISH_AND_CLAIM",
        ("results sent with a claim are lost", "({SUCCEED})", "(SELECT 0 AS id WHERE false)"),
        ("a claim ends the lease of what is just finished", "AND id <> ALL(%(run_ids)s::bigint[])", ""),
    ),
]

LIMITED = at(
    "claim_limited.py",
    "CLAIM_LIMITED",
    ("two claims use one queue's places at once", "FOR UPDATE OF queues SKIP LOCKED", ""),
    ("limited claims wait for each other", "FOR UPDATE OF queues SKIP LOCKED", "FOR UPDATE OF queues"),
    ("a run that has ended keeps its place", " AND run.status = '{Status.RUNNING}'", ""),
    ("leases that ran out keep their places", "AND {LEASE_IS_OVER}", "AND false"),
    ("leases still running are ended for their places", "AND {LEASE_IS_OVER}", ""),
    ("what runs does not count", "(SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)", "0"),
    ("what runs counts in every queue", " WHERE holders.name = due_lanes.queue)", ")"),
    ("under a limit runs not due are claimed", "AND run_at <= now() AND {CLAIMABLE}", "AND {CLAIMABLE}"),
    ("under a limit anything is claimed", "AND {CLAIMABLE}", "AND status <> 'running'"),
    ("under a limit the last due goes first", "ORDER BY run_at, id\n", "ORDER BY run_at DESC, id DESC\n"),
    ("each priority has the limit for itself", "WHERE position <= room", "WHERE true"),
    (
        "under a limit the urgent wait",
        "PARTITION BY queue ORDER BY priority, run_at, id",
        "PARTITION BY queue ORDER BY id",
    ),
    ("under a limit more is claimed than was asked for", "ORDER BY priority, run_at, id LIMIT %(limit)s", ""),
    (
        "a run that still runs is forgotten",
        "WHERE holders.name = queues.name AND holders.id NOT",
        "WHERE holders.id NOT",
    ),
    (
        "a run that begins is forgotten",
        "SELECT seen.id FROM seen WHERE seen.queue = queues.name AND",
        "SELECT seen.id FROM seen WHERE false AND",
    ),
    ("nobody says that another claim was in the way", "max_running > 0 AND queue NOT IN", "false AND queue NOT IN"),
)

LEASE = [
    *at(
        "lease.py",
        "HEARTBEAT",
        ("a heartbeat shortens a lease", "run.locked_until, now()", "now()"),
        ("a heartbeat keeps a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("a heartbeat keeps another worker's lease", " AND run.locked_by = %(worker)s", ""),
        ("a heartbeat does not tell of cancelling", "run.cancel_requested_at IS NOT NULL AS", "false AS"),
    ),
    *at(
        "lease.py",
        "PROGRESS",
        ("progress is told of other runs", "run.id = %(run_id)s AND ", ""),
        ("progress is told under a lease that is over", "run.lease_no = %(lease_no)s AND ", ""),
        ("progress is told by another worker", " AND run.locked_by = %(worker)s", ""),
        ("telling of progress forgets what was saved", "coalesce(run.progress, '{{}}') || ", ""),
    ),
    *at(
        "lease.py",
        "EXPIRED",
        (
            "a run that was to stop goes on",
            "run.cancel_requested_at IS NOT NULL THEN '{Status.CANCELLED}'",
            "false THEN ''",
        ),
        (
            "a run goes on after its last lease",
            "run.attempts >= run.max_attempts THEN '{Status.DEAD}'",
            "false THEN ''",
        ),
        ("a lease that ran out stays in the row", "locked_by = NULL, locked_until = NULL, ", ""),
        ("a run whose lease ran out goes first again", "ELSE now() END", "ELSE run.run_at END"),
        ("a lease that ran out is no error of its own", "error_type = 'LeaseExpired', ", ""),
    ),
    *at(
        "lease.py",
        "EXPIRED_ATTEMPT",
        ("a lease that ran out is remembered as another's", "seen.worker", "'somebody' AS worker"),
        ("a lease that ran out is remembered without a reason", "expired.last_error AS error", "NULL AS error"),
    ),
    *at(
        "lease.py",
        "EXPIRE",
        ("the sweep ends other leases", "id = %(run_id)s AND ", ""),
        ("the sweep ends a later lease", "lease_no = %(lease_no)s AND ", ""),
        ("the sweep ends living leases", " AND locked_until < now()", ""),
        ("the sweep does not wait for a heartbeat", "FOR UPDATE", ""),
        ("a lease ended by the sweep is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
    ),
]

HISTORY = at(
    "fragments.py",
    "HISTORY",
    (
        "attempts are remembered without their stack",
        "error_type, error, stack, permanent, forensics\n",
        "error_type, error, NULL, permanent, forensics\n",
    ),
    (
        "attempts are remembered without their beginning",
        "outcome, worker, started_at, error_type, error, stack, permanent, forensics\n",
        "outcome, worker, now(), error_type, error, stack, permanent, forensics\n",
    ),
)

ENDINGS = (Event.FAIL, Event.GIVE_UP, Event.RELEASE, Event.SNOOZE, Event.CANCELLED)

FINISH = [
    *(
        mutant
        for event in ENDINGS
        for mutant in at(
            "finish.py",
            event.name,
            (f"{event} on other runs", "run.id = %(run_id)s AND ", ""),
            (f"{event} under a lease that is over", "run.lease_no = %(lease_no)s AND ", ""),
            (f"{event} by another worker", " AND run.locked_by = %(worker)s", ""),
            (f"{event} leaves the lease in the row", "locked_by = NULL, locked_until = NULL, ", ""),
            (f"{event} is not remembered", "history AS ({HISTORY})", "history AS (SELECT 1)"),
        )
    ),
    *at(
        "finish.py",
        "SUCCEED",
        ("succeed under a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("succeed by another worker", " AND run.locked_by = %(worker)s", ""),
        ("succeed without an end", "finished_at = now(),", "finished_at = NULL,"),
        ("succeed without a result", "result = nullif(%(lease_keys)s::jsonb -> {LEASE_KEY}, 'null'), ", ""),
    ),
    *at(
        "finish.py",
        "UNCLAIM",
        ("unclaim under a lease that is over", "%(lease_keys)s::jsonb ? {LEASE_KEY} AND ", ""),
        ("unclaim by another worker", " AND run.locked_by = %(worker)s", ""),
        ("unclaim keeps the attempt", "attempts = run.attempts - 1, ", ""),
    ),
    *at(
        "finish.py",
        "FAIL",
        ("fail without an attempt left", " AND run.attempts < run.max_attempts", ""),
        ("fail without waiting", "now() + %(delay)s * interval '1 second'", "now()"),
        ("fail keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "GIVE_UP",
        ("give up without an end", "finished_at = now()", "finished_at = NULL"),
        ("give up keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "RELEASE",
        (
            "release after the last attempt",
            "CASE WHEN run.attempts < run.max_attempts THEN '{Status.QUEUED}'",
            "CASE WHEN true THEN '{Status.QUEUED}'",
        ),
        ("release without an end", "ELSE now() END", "ELSE NULL END"),
        ("release keeps no error", ", {ERROR}", ""),
    ),
    *at(
        "finish.py",
        "SNOOZE",
        ("snooze keeps the attempt", ", attempts = run.attempts - 1", ""),
        ("snooze without waiting", "run_at = %(until)s", "run_at = now()"),
        ("snooze is remembered as the attempt before", "run.attempts + 1 AS attempt", "run.attempts AS attempt"),
    ),
    *at(
        "finish.py",
        "CANCELLED",
        ("cancelled without having been asked", " AND run.cancel_requested_at IS NOT NULL", ""),
        ("cancelled without an end", "finished_at = now()", "finished_at = NULL"),
    ),
]

OPERATOR = [
    *at(
        "cancel.py",
        "CANCEL",
        ("cancel hits other runs", "id = %(run_id)s AND ", ""),
        ("cancel in any status", " AND {WAITS}", ""),
    ),
    *at("cancel.py", "CANCELLED_AT_ONCE", ("cancel without an end", "finished_at = now()", "finished_at = NULL")),
    *at(
        "cancel.py",
        "ASK_TO_CANCEL",
        ("ask to cancel hits other runs", "id = %(run_id)s AND ", ""),
        ("ask to cancel in any status", " AND {RUNS}", ""),
    ),
    *at(
        "cancel.py",
        "ASKED",
        ("asking again forgets when it was asked", "coalesce(cancel_requested_at, now())", "now()"),
    ),
    *at(
        "cancel.py",
        "FORCE_CANCEL",
        ("force cancel hits other runs", "id = %(run_id)s AND ", ""),
        ("force cancel hits a later lease", " AND lease_no = %(lease_no)s", ""),
        ("force cancel in any status", " AND status IN {sources_of(Event.FORCE_CANCEL)}", ""),
        ("force cancel leaves the lease", ", locked_by = NULL, locked_until = NULL", ""),
        ("force cancel forgets when it was asked", "coalesce(run.cancel_requested_at, now())", "now()"),
        (
            "force cancel is not remembered",
            "FROM forced JOIN seen ON forced.id = seen.id",
            "FROM forced JOIN seen ON false",
        ),
    ),
    *at(
        "operate.py",
        "RUN_NOW",
        ("run now hits other runs", "id = %(run_id)s AND ", ""),
        ("run now in any status", " AND status IN {sources_of(Event.RUN_NOW)}", ""),
        ("run now some other time", "run_at = now(), ", ""),
        ("run now forgets the attempts", "run_at = now(), ", "run_at = now(), attempts = 0, "),
    ),
    *at(
        "operate.py",
        "RETRIABLE",
        ("retry in any status", "status IN {sources_of(Event.RETRY)} AND ", ""),
        ("retry of what was pruned", " AND pruned_at IS NULL", ""),
    ),
    *at("operate.py", "RETRY", ("retry hits other runs", "id = %(run_id)s AND ", "")),
    *at(
        "operate.py",
        "RETRIED",
        ("retry keeps the attempts", "attempts = 0, ", ""),
        ("retry forgets the lease number", "attempts = 0, ", "attempts = 0, lease_no = 0, "),
        ("retry some other time", "run_at = now(), ", ""),
        ("retry leaves the end", "finished_at = NULL, ", ""),
        ("retry leaves the wish to stop", ", cancel_requested_at = NULL", ""),
        ("retry keeps the error", "last_error = NULL, ", ""),
        ("retry keeps the progress", ", progress = NULL", ""),
    ),
    *at(
        "clone.py",
        "CLONE",
        ("clone takes other runs too", "WHERE id = %(run_id)s", "WHERE id >= %(run_id)s"),
        ("clone of what was pruned", " AND pruned_at IS NULL", ""),
        ("a clone's own payload is not taken", "coalesce(%(payload)s::jsonb, payload)", "payload"),
        ("a clone is due at once though it was to wait", "coalesce(%(run_at)s::timestamptz, now())", "now()"),
        ("a clone keeps no key", "%(key)s", "NULL"),
    ),
    *at(
        "clone.py",
        "clone",
        ("a clone is not audited", 'record(connection, operator.who, "clone"', '(connection, operator.who, "clone"'),
        ("a clone is made of what was not seen", "check_seen(lock_run(connection, run_id), seen)", "pass"),
        ("a clone that is refused is kept", "with all_or_nothing(connection):", "if True:"),
        ("a clone of another run is the same content", 'f"clone of {run_id}"', '"clone"'),
    ),
    *at("inspect.py", "LOCK_RUN", ("the audit tells what was before somebody's change", " FOR UPDATE OF run", "")),
    *at(
        "operate.py",
        "change",
        (
            "an operator's change is not audited",
            "record(connection, operator.who, event",
            "(connection, operator.who, event",
        ),
        ("what was not seen is changed", "check_seen(before, seen)", "pass"),
        ("an operator's change wakes nobody", 'fetch_all(connection, f"SELECT {WAKE}")', "pass"),
    ),
]

ENQUEUE = [
    *at(
        "enqueue.py",
        "INSERT",
        (
            "a key is written down as who asked",
            "idempotency_key, request_fingerprint, created_by, status)",
            "created_by, request_fingerprint, idempotency_key, status)",
        ),
    ),
    *at(
        "enqueue.py",
        "UNLESS_KEY_IS_TAKEN",
        (
            "a second run for one key is tried",
            "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
            "",
        ),
        ("what is due later wakes the workers", "CASE WHEN run_at <= now() THEN", "CASE WHEN true THEN"),
        ("what is due wakes nobody", "CASE WHEN run_at <= now() THEN", "CASE WHEN false THEN"),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_ONE",
        ("a key is not kept", "%(key)s", "NULL"),
        ("every run is due at once", "coalesce(%(run_at)s::timestamptz, now())", "now()"),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_MANY",
        ("of many the keys are not kept", "%(max_attempts)s, wanted.key,", "%(max_attempts)s, NULL,"),
        ("many are due at once", "coalesce(%(run_at)s::timestamptz, now())", "now()"),
    ),
    *at(
        "enqueue.py",
        "answered",
        ("a key stands for any content", "if fingerprint != item.fingerprint:", "if False:"),
        ("a replay is said to be new", "replayed=True", "replayed=False"),
    ),
    *at(
        "enqueue.py",
        "fingerprint_of",
        ("another payload is the same content", "[job_type, payload, chosen]", "[job_type, chosen]"),
        ("other options are the same content", "[job_type, payload, chosen]", "[job_type, payload]"),
    ),
    *at(
        "enqueue.py",
        "_enqueued",
        ("of many with a conflict some are kept", "with all_or_nothing(connection):", "if True:"),
    ),
    *at("enqueue.py", "stored_text", ("payloads of any size are stored", "if size > PAYLOAD_BYTES:", "if False:")),
    *at("enqueue.py", "checked_key", ("keys of any length are stored", "0 < len(key) <= KEY_CHARACTERS", "True")),
    *at("enqueue.py", "checked_key", ("keys of any characters are stored", "or not key.isprintable()", "")),
    *at(
        "enqueue.py",
        "check_options",
        ("queues of any name are taken", 'not NAME.fullmatch(chosen["queue"])', "False"),
        ("priorities beyond the column are tried", 'not -32768 <= chosen["priority"] <= 32767', "False"),
        ("any number of attempts is taken", 'not 1 <= chosen["max_attempts"] <= 1000', "False"),
    ),
]

PRUNE = [
    *at(
        "retention/prune.py",
        "SEEN",
        ("what changed since it was seen is taken", "extract(epoch FROM run.updated_at)", "''"),
    ),
    *at(
        "retention/prune.py",
        "DAYS",
        ("a type's own days do not count", "%(types)s::jsonb -> page.job_type ->> page.status, ", ""),
        ("one type's days count for all", "%(types)s::jsonb -> page.job_type", "%(types)s::jsonb -> 'gone_since'"),
        ("one status's days count for all", "%(days)s::jsonb ->> page.status", "%(days)s::jsonb ->> 'succeeded'"),
    ),
    *at(
        "retention/prune.py",
        "PAGE",
        ("of runs asked for at once only one page is met", "(run.created_at, run.id) >", "(run.created_at, 0) >"),
        ("a walk begins in the middle", "ORDER BY run.created_at, run.id LIMIT", "ORDER BY run.id LIMIT"),
        ("a page has no end", " LIMIT %(batch)s", ""),
        ("a page ends at its first run", "ORDER BY created_at DESC, id DESC", "ORDER BY created_at, id"),
        ("runs go before their time", "WHERE finished_at < now() - {DAYS} * interval '24 hours'", "WHERE true"),
        ("runs go at their time's very end", "WHERE finished_at < now()", "WHERE finished_at <= now()"),
        ("what is pruned is pruned again", " AND bare = %(bare)s", ""),
    ),
    *at(
        "retention/prune.py",
        "AS_SEEN",
        (
            "runs beside those that are due go",
            "run.id = ANY(%(due)s::bigint[]) AND {SEEN} = ANY(%(seen)s::text[])",
            "true",
        ),
        ("it does not matter how a run was seen", " AND {SEEN} = ANY(%(seen)s::text[])", ""),
    ),
    *at(
        "retention/prune.py",
        "TAKE",
        ("live runs are taken", " AND run.finished_at IS NOT NULL", ""),
        ("pruning waits for who holds a run", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        ("keys go with their runs", "idempotency_key IS NULL OR pruned_at IS NOT NULL AS goes", "true AS goes"),
        ("bare rows never go", " OR pruned_at IS NOT NULL AS goes", " AS goes"),
        ("all that is taken is deleted", "FROM taken WHERE goes)", "FROM taken)"),
        ("payloads stay", "payload = '{{}}', ", ""),
        ("results stay", "result = NULL, ", ""),
        ("progress stays", "progress = NULL, ", ""),
        ("errors stay", "last_error = NULL, ", ""),
        ("stacks stay", "last_stack = NULL, ", ""),
        ("traces stay", ", trace_parent = NULL", ""),
        ("nobody knows what was pruned", "pruned_at = now(), ", ""),
        ("attempts stay", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE false"),
        ("attempts of other runs go", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE true"),
    ),
    *at(
        "retention/prune.py",
        "WHOLE",
        ("attempts of other runs are archived", "WHERE ended.run_id = run.id", "WHERE true"),
        ("other runs are archived", "WHERE {AS_SEEN}", ""),
    ),
    *at(
        "retention/prune.py",
        "_OLD",
        ("other definitions' occurrences count", "WHERE definition_id = definition.id AND", "WHERE"),
        ("new occurrences go", "least(now() - %(days)s * interval '24 hours', (", "least(now(), ("),
        ("the last occurrence goes too", "nominal_at < least(", "nominal_at <= least("),
    ),
    *at(
        "retention/prune.py",
        "POLICY",
        ("any definition is the policy", "name = %(job_type)s AND ", ""),
        ("a definition of another type is the policy", " AND job_type = %(job_type)s", ""),
        ("a definition that was removed is the policy", " AND removed_at IS NULL", ""),
    ),
]


def ticking(place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of one place of the tick."""
    return [
        Mutant(name, "shared/rowcall/definitions/tick.py", place, stands, instead) for name, stands, instead in changes
    ]


TICK = [
    *ticking("DUE", ("types that are not known here are decided", "job_type = ANY(%(job_types)s::text[])", "true")),
    *ticking("LIVE", ("a run that has ended counts as under way", " AND finished_at IS NULL", "")),
    *ticking(
        "OCCUR",
        ("what was decided is decided again", "known.nominal_at = decided.nominal_at", "false"),
        ("what is not to run runs", "WHERE outcome = '{Outcome.ENQUEUED}' ORDER BY", "ORDER BY"),
        ("a fact that has a run is an error", "    ON CONFLICT DO NOTHING\n", ""),
        (
            "runs come without their nominal time",
            "SELECT %(definition_id)s, nominal_at,",
            "SELECT %(definition_id)s, NULL,",
        ),
        (
            "runs come without their jitter",
            "payload, %(queue)s, %(priority)s, run_at,",
            "payload, %(queue)s, %(priority)s, now(),",
        ),
        ("runs come without their key", "        key, fingerprint,", "        NULL, fingerprint,"),
        (
            "a fact that has a run is told as enqueued",
            "THEN '{Outcome.SKIPPED}' ELSE new.outcome",
            "THEN new.outcome ELSE new.outcome",
        ),
    ),
    *ticking("MOVE_ON", ("another definition moves on", "WHERE id = %(definition_id)s", "WHERE true")),
    *ticking(
        "BEAT",
        ("an idle tick writes each time", " WHERE ticked_at < now() - interval '10 seconds'", ""),
        ("the silence before is forgotten", "before.ticked_at AS before", "schedule_ticks.ticked_at AS before"),
    ),
    *ticking("NEXT_DUE", ("the next time is not the first", "min(next_run_at)", "max(next_run_at)")),
    *ticking("decide_definition", ("overlap is not looked for", "if rule.overlap is Overlap.SKIP", "if False")),
    *ticking("settle", ("a change decides nothing of what came before", "if due and", "if False and")),
]

BULK = [
    *at(
        "bulk.py",
        "change_many",
        ("of many others are changed too", "id = ANY(%(run_ids)s::bigint[]) AND ", ""),
        ("of many those are changed that it cannot happen to", " AND {step.guard}", ""),
        ("of many those are changed that match no more", " AND {MATCHES}", ""),
        ("changing many waits for who holds one", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        (
            "changing many is not audited",
            "FROM changed JOIN met ON met.id = changed.id",
            "FROM changed JOIN met ON false",
        ),
        (
            "many are audited as each other",
            "FROM changed JOIN met ON met.id = changed.id",
            "FROM changed JOIN met ON true",
        ),
    ),
    *at(
        "bulk.py",
        "bulk",
        ("a dry run changes", "if dry_run:", "if False:"),
        ("what it cannot happen to is met", ", action.guard)", ")"),
    ),
    *at(
        "bulk.py",
        "changed_of",
        ("many that are due wake nobody", 'fetch_all(connection, f"SELECT {WAKE}")', "pass"),
    ),
    *at(
        "bulk.py",
        "_narrowed",
        ("all are changed though nobody said so", "wanted.leaves_all_open and not everything", "False"),
    ),
    *at("bulk.py", "Action", ("who was asked is asked again", " AND cancel_requested_at IS NULL", "")),
]

DOOR = at(
    "moments.py",
    "unusable",
    ("times without offset are taken", "if moment.tzinfo is None:", "if False:"),
    ("times of any year are taken", "if moment.year not in YEARS:", "if False:"),
)

MUTANTS = (*CLAIM, *LIMITED, *LEASE, *HISTORY, *FINISH, *OPERATOR, *ENQUEUE, *TICK, *PRUNE, *BULK, *DOOR)
