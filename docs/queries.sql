-- Every statement of the queue, the effects and the definitions, as PostgreSQL gets it.
--
-- Produced by `make docs` from the code.  Each has a name, its module, the comment that stands beside it there, and a
-- value for each of its parameters.  Run one in psql, or all of them:
--
--     psql "$DATABASE_URL" --file docs/queries.sql
--
-- Each runs in a transaction that is rolled back, so that nothing changes.  Where a value does not fit the rows of your
-- database, PostgreSQL refuses that statement, and psql goes on with the next.  EXPLAIN shows a plan.

-- rowcall.definitions.apply: LOCK_OUT_OTHERS
-- Two at once would wait for each other's rows.
BEGIN;
SELECT pg_advisory_xact_lock(33346484);
ROLLBACK;

-- rowcall.definitions.run_now: SET_DEFINITION
\set definition_id '1'
\set run_id '1'
BEGIN;
UPDATE rowcall.job_runs SET definition_id = :'definition_id' WHERE id = :'run_id';
ROLLBACK;

-- rowcall.definitions.store: GET
\set name 'nightly'
BEGIN;
SELECT * FROM rowcall.job_definitions WHERE name = :'name' AND removed_at IS NULL;
ROLLBACK;

-- rowcall.definitions.store: LIST
BEGIN;
SELECT * FROM rowcall.job_definitions WHERE removed_at IS NULL ORDER BY name;
ROLLBACK;

-- rowcall.definitions.store: LIST_PAGE
-- The same, a page at a time.  A removed definition's row stays, so that a page can begin behind it.
\set after_id '0'
\set page_bytes '1048576'
BEGIN;
WITH shown AS (
    SELECT * FROM rowcall.job_definitions
    WHERE removed_at IS NULL
        AND name > coalesce((SELECT name FROM rowcall.job_definitions WHERE id = :'after_id'), '')
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY name) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY name ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT * FROM measured WHERE (bytes <= :'page_bytes' OR place = 1) ORDER BY name;
ROLLBACK;

-- rowcall.definitions.store: LIST_LOCKED
-- The listed definitions cannot change until the caller's transaction ends.
BEGIN;
SELECT * FROM rowcall.job_definitions WHERE removed_at IS NULL ORDER BY name FOR UPDATE;
ROLLBACK;

-- rowcall.definitions.store: LOCK
-- Removed ones too: a definition that comes back continues its revisions.
\set name 'nightly'
BEGIN;
SELECT * FROM rowcall.job_definitions WHERE name = :'name' FOR UPDATE;
ROLLBACK;

-- rowcall.definitions.store: CREATE
-- Of two that create the same name at once, one does, and the other then finds it.
\set name 'nightly'
\set job_type 'noop'
BEGIN;
INSERT INTO rowcall.job_definitions (name, job_type, removed_at, revision) VALUES (:'name', :'job_type', now(), 0)
ON CONFLICT (name) DO NOTHING;
ROLLBACK;

-- rowcall.definitions.store: CHANGE
-- A change of the content begins a new revision, and brings back what was removed.
\set job_type 'noop'
\set payload '{"user_id": 1}'
\set schedule '17 3 * * *'
\set time_zone 'UTC'
\set catch_up 'latest'
\set max_lateness '6 hours'
\set overlap 'skip'
\set jitter '0.0'
\set queue 'default'
\set priority '0'
\set max_attempts '5'
\set managed_by 'api'
\set next_run_at '2027-01-05T12:00:00+00:00'
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions
SET
    job_type = :'job_type',
    payload = :'payload',
    schedule = :'schedule',
    time_zone = :'time_zone',
    catch_up = :'catch_up',
    max_lateness = :'max_lateness',
    overlap = :'overlap',
    jitter = :'jitter',
    queue = :'queue',
    priority = :'priority',
    max_attempts = :'max_attempts',
    managed_by = :'managed_by', next_run_at = :'next_run_at', revision = revision + 1, removed_at = NULL,
    updated_at = now()
WHERE id = :'definition_id'
RETURNING *;
ROLLBACK;

-- rowcall.definitions.store: SAME_PAYLOAD
-- PostgreSQL's own equality: Python takes 1 and true for equal, and 1e400 and its digits for different.
\set payload '{"user_id": 1}'
\set definition_id '1'
BEGIN;
SELECT payload = :'payload'::jsonb FROM rowcall.job_definitions WHERE id = :'definition_id';
ROLLBACK;

-- rowcall.definitions.store: ADOPT
\set managed_by 'api'
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions SET managed_by = :'managed_by' WHERE id = :'definition_id' RETURNING *;
ROLLBACK;

-- rowcall.definitions.store: PAUSE
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions SET paused_at = coalesce(paused_at, now()), updated_at = now()
WHERE id = :'definition_id' RETURNING *;
ROLLBACK;

-- rowcall.definitions.store: RESUME
-- From now: times during the pause do not run, even those that are not decided yet.
\set next_run_at '2027-01-05T12:00:00+00:00'
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions
SET next_run_at = CASE WHEN paused_at IS NULL THEN next_run_at ELSE :'next_run_at' END,
    paused_at = NULL, updated_at = now()
WHERE id = :'definition_id' RETURNING *;
ROLLBACK;

-- rowcall.definitions.store: REMOVE
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions SET removed_at = now(), next_run_at = NULL, paused_at = NULL, updated_at = now()
WHERE id = :'definition_id' RETURNING *;
ROLLBACK;

-- rowcall.definitions.store: OCCURRENCES
-- schedule_occurrences' primary key, backwards.
\set definition_id '1'
\set earlier_than 'infinity'
\set limit '50'
BEGIN;
SELECT nominal_at, outcome, reason, run_id, revision, created_at FROM rowcall.schedule_occurrences
WHERE definition_id = :'definition_id' AND nominal_at < coalesce(:'earlier_than'::timestamptz, 'infinity')
ORDER BY nominal_at DESC LIMIT :'limit';
ROLLBACK;

-- rowcall.definitions.tick: DUE
-- The first definition that is due and not locked.  Types that this process does not know are left to newer processes.
\set job_types '{"noop"}'
\set tried '{"1"}'
\set resting_ids '{"2"}'
\set resting_revisions '{"1"}'
BEGIN;
SELECT *, now() AS decided_at FROM rowcall.job_definitions
WHERE next_run_at <= now() AND job_type = ANY(:'job_types'::text[]) AND id <> ALL(:'tried'::bigint[])
    AND NOT (id, revision) IN (
        SELECT resting.id, resting.revision
        FROM unnest(:'resting_ids'::bigint[], :'resting_revisions'::integer[]) AS resting(id, revision)
    )
ORDER BY next_run_at, id LIMIT 1
FOR UPDATE SKIP LOCKED;
ROLLBACK;

-- rowcall.definitions.tick: LIVE
-- job_runs_definition_live.
\set definition_id '1'
BEGIN;
SELECT id FROM rowcall.job_runs WHERE definition_id = :'definition_id' AND finished_at IS NULL LIMIT 1;
ROLLBACK;

-- rowcall.definitions.tick: OCCUR
-- Insert the new occurrences of what was decided, with their runs.
--
-- new   An occurrence that exists already stays as it is, whatever the clock or an edit did meanwhile.
-- runs  An occurrence whose natural key another run holds becomes no second run of the same fact.
\set nominal_at '{"2026-01-05T12:00:00+00:00"}'
\set outcome '{"enqueued"}'
\set reason '{"in time"}'
\set run_at '{"2026-01-05T12:00:00+00:00"}'
\set payload '{"{\\"user_id\\": 1}"}'
\set natural_key '{"welcome:1"}'
\set fingerprint '{"9f86d081884c7d659a2feaa0c55ad015"}'
\set definition_id '1'
\set job_type 'noop'
\set queue 'default'
\set priority '0'
\set max_attempts '5'
\set unique_mode 'ever'
\set created_by 'cli:me'
\set revision '1'
BEGIN;
WITH new AS (
    SELECT * FROM unnest(
        :'nominal_at'::timestamptz[], :'outcome'::text[], :'reason'::text[], :'run_at'::timestamptz[],
        :'payload'::jsonb[], :'natural_key'::text[], :'fingerprint'::text[]
    ) AS decided(nominal_at, outcome, reason, run_at, payload, natural_key, fingerprint)
    WHERE NOT EXISTS (
        SELECT FROM rowcall.schedule_occurrences AS known
        WHERE known.definition_id = :'definition_id' AND known.nominal_at = decided.nominal_at
    )
), runs AS (
    INSERT INTO rowcall.job_runs (definition_id, scheduled_for, job_type, payload, queue, priority, run_at,
        max_attempts, natural_key, unique_mode, content_fingerprint, created_by, status)
    SELECT :'definition_id', nominal_at, :'job_type', payload, :'queue', :'priority', run_at, :'max_attempts',
        natural_key, :'unique_mode', fingerprint, :'created_by', 'queued'
    FROM new WHERE outcome = 'enqueued' ORDER BY nominal_at
    ON CONFLICT DO NOTHING
    RETURNING id, scheduled_for, CASE WHEN run_at <= now() THEN pg_catalog.pg_notify('rowcall_due', '') END
)
INSERT INTO rowcall.schedule_occurrences (definition_id, nominal_at, outcome, reason, revision, run_id)
SELECT :'definition_id', new.nominal_at,
    CASE WHEN new.outcome = 'enqueued' AND runs.id IS NULL THEN 'skipped' ELSE new.outcome END,
    CASE WHEN new.outcome = 'enqueued' AND runs.id IS NULL
         THEN 'another run holds the natural key ' || new.natural_key ELSE new.reason END,
    :'revision', runs.id
FROM new LEFT JOIN runs ON runs.scheduled_for = new.nominal_at
ON CONFLICT (definition_id, nominal_at) DO NOTHING
RETURNING outcome;
ROLLBACK;

-- rowcall.definitions.tick: MOVE_ON
\set next_at '2027-01-05T12:00:00+00:00'
\set definition_id '1'
BEGIN;
UPDATE rowcall.job_definitions SET next_run_at = :'next_at' WHERE id = :'definition_id';
ROLLBACK;

-- rowcall.definitions.tick: BEAT
-- At most once in ten seconds, so that idle workers do not write every second.
\set worker 'worker-1'
BEGIN;
WITH before AS (
    SELECT ticked_at FROM rowcall.schedule_ticks WHERE ticked_at < now() - interval '10 seconds' FOR UPDATE SKIP LOCKED
)
UPDATE rowcall.schedule_ticks SET ticked_at = now(), worker = :'worker' FROM before
RETURNING before.ticked_at AS before, now() AS after;
ROLLBACK;

-- rowcall.definitions.tick: LAST_TICK
-- A worker without a heartbeat for longer is gone.  Cron wakes `once` each minute, and a deploy takes a moment.
BEGIN;
SELECT ticked_at, worker, ticked_at < now() - interval '150.0 seconds'
    AND EXISTS (SELECT FROM rowcall.job_definitions WHERE next_run_at IS NOT NULL) AS silent
FROM rowcall.schedule_ticks;
ROLLBACK;

-- rowcall.definitions.tick: UNDECIDED
-- Overdue although workers tick: no worker knows the type, or the definition is broken.
BEGIN;
SELECT name, job_type, next_run_at FROM rowcall.job_definitions
WHERE next_run_at < now() - interval '150.0 seconds' ORDER BY next_run_at, name LIMIT 20;
ROLLBACK;

-- rowcall.definitions.tick: NEXT_DUE
-- What this process could not decide a moment ago; an edit begins another revision, which is tried at once.
\set job_types '{"noop"}'
\set resting_ids '{"2"}'
\set resting_revisions '{"1"}'
BEGIN;
SELECT extract(epoch FROM min(next_run_at) - clock_timestamp())::float8 FROM rowcall.job_definitions
WHERE next_run_at IS NOT NULL AND job_type = ANY(:'job_types'::text[]) AND NOT (id, revision) IN (
        SELECT resting.id, resting.revision
        FROM unnest(:'resting_ids'::bigint[], :'resting_revisions'::integer[]) AS resting(id, revision)
    );
ROLLBACK;

-- rowcall.definitions.tick: CLOCK
-- Not now(), which is the time at which the transaction began.
BEGIN;
SELECT clock_timestamp();
ROLLBACK;

-- rowcall.effects.ledger: HOLD
-- Primary key.  FOR SHARE: neither a sweep nor an operator can end the lease before this transaction has ended.
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
BEGIN;
SELECT id FROM rowcall.job_runs
WHERE id = :'run_id' AND lease_no = :'lease_no' AND locked_by = :'worker'
    AND status IN ('running')
FOR SHARE;
ROLLBACK;

-- rowcall.effects.ledger: HOLDER_LIVES
-- Whether the attempt that began an effect may still perform it: another run's, under a lease that was not ended.
\set run_id '1'
\set lease_no '1'
BEGIN;
SELECT EXISTS (
    SELECT FROM rowcall.job_runs
    WHERE id = :'run_id' AND lease_no = :'lease_no' AND status IN ('running')
);
ROLLBACK;

-- rowcall.effects.lists: ALL[sent_emails]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_sent_emails '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE id < :'behind_sent_emails' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: ALL[sent_reports]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_sent_reports '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE id < :'behind_sent_reports' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: ALL[payments]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_payments '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE id < :'behind_payments' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: ALL[delivered_webhooks]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_delivered_webhooks '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE id < :'behind_delivered_webhooks' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: ALL[generated_files]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_generated_files '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE id < :'behind_generated_files' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: ALL[other_effects]
-- The primary key, from the last place on; nearly all effects are applied.  One kind of several goes by {table}_kind.
\set behind_other_effects '9223372036854775807'
\set kind 'sms'
\set limit '50'
BEGIN;
(
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE id < :'behind_other_effects' AND (:'kind'::text IS NULL OR kind = :'kind') ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[sent_emails]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_sent_emails '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE state = 'applied' AND id < :'behind_sent_emails' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[sent_reports]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_sent_reports '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE state = 'applied' AND id < :'behind_sent_reports' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[payments]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_payments '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE state = 'applied' AND id < :'behind_payments' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[delivered_webhooks]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_delivered_webhooks '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE state = 'applied' AND id < :'behind_delivered_webhooks' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[generated_files]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_generated_files '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE state = 'applied' AND id < :'behind_generated_files' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: APPLIED[other_effects]
-- Of each table a page at the most, and one more, which tells that there is another.
\set behind_other_effects '9223372036854775807'
\set kind 'sms'
\set limit '50'
BEGIN;
(
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE state = 'applied' AND id < :'behind_other_effects' AND (:'kind'::text IS NULL OR kind = :'kind') ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_emails, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_emails '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE state = 'intent' AND id < :'behind_sent_emails' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_emails, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_emails '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE state = 'unknown' AND id < :'behind_sent_emails' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_emails, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_emails '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE state = 'refused' AND id < :'behind_sent_emails' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_reports, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_reports '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE state = 'intent' AND id < :'behind_sent_reports' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_reports, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_reports '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE state = 'unknown' AND id < :'behind_sent_reports' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[sent_reports, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_sent_reports '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE state = 'refused' AND id < :'behind_sent_reports' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[payments, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_payments '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE state = 'intent' AND id < :'behind_payments' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[payments, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_payments '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE state = 'unknown' AND id < :'behind_payments' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[payments, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_payments '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE state = 'refused' AND id < :'behind_payments' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[delivered_webhooks, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_delivered_webhooks '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE state = 'intent' AND id < :'behind_delivered_webhooks' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[delivered_webhooks, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_delivered_webhooks '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE state = 'unknown' AND id < :'behind_delivered_webhooks' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[delivered_webhooks, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_delivered_webhooks '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE state = 'refused' AND id < :'behind_delivered_webhooks' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[generated_files, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_generated_files '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE state = 'intent' AND id < :'behind_generated_files' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[generated_files, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_generated_files '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE state = 'unknown' AND id < :'behind_generated_files' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[generated_files, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_generated_files '9223372036854775807'
\set limit '50'
BEGIN;
(
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE state = 'refused' AND id < :'behind_generated_files' ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[other_effects, intent]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_other_effects '9223372036854775807'
\set kind 'sms'
\set limit '50'
BEGIN;
(
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE state = 'intent' AND id < :'behind_other_effects' AND (:'kind'::text IS NULL OR kind = :'kind') ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[other_effects, unknown]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_other_effects '9223372036854775807'
\set kind 'sms'
\set limit '50'
BEGIN;
(
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE state = 'unknown' AND id < :'behind_other_effects' AND (:'kind'::text IS NULL OR kind = :'kind') ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OPEN[other_effects, refused]
-- What is not settled is a stretch of the partial index {table}_open, state by state.
\set behind_other_effects '9223372036854775807'
\set kind 'sms'
\set limit '50'
BEGIN;
(
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE state = 'refused' AND id < :'behind_other_effects' AND (:'kind'::text IS NULL OR kind = :'kind') ORDER BY id DESC LIMIT :'limit' + 1);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[sent_emails]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set behind_sent_emails '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE run_id = :'run_id')
SELECT * FROM its
WHERE id < :'behind_sent_emails' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[sent_reports]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set behind_sent_reports '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE run_id = :'run_id')
SELECT * FROM its
WHERE id < :'behind_sent_reports' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[payments]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set behind_payments '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE run_id = :'run_id')
SELECT * FROM its
WHERE id < :'behind_payments' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[delivered_webhooks]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set behind_delivered_webhooks '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE run_id = :'run_id')
SELECT * FROM its
WHERE id < :'behind_delivered_webhooks' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[generated_files]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set behind_generated_files '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE run_id = :'run_id')
SELECT * FROM its
WHERE id < :'behind_generated_files' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: OF_A_RUN[other_effects]
-- The index {table}_run; materialized, because a planner that saw the ORDER BY would walk through all effects.
\set run_id '1'
\set kind 'sms'
\set behind_other_effects '9223372036854775807'
\set states '{"applied"}'
\set limit '50'
BEGIN;
(
WITH its AS MATERIALIZED (
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE run_id = :'run_id' AND (:'kind'::text IS NULL OR kind = :'kind'))
SELECT * FROM its
WHERE id < :'behind_other_effects' AND (:'states'::text[] IS NULL OR state = ANY(:'states'::text[])) ORDER BY id DESC LIMIT :'limit' + 1
);
ROLLBACK;

-- rowcall.effects.lists: DECLARED_KINDS
-- The unique index, by leaps from one kind to the next.
BEGIN;
WITH RECURSIVE leap AS (
    (SELECT kind FROM rowcall.other_effects ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (SELECT kind FROM rowcall.other_effects WHERE kind > leap.kind ORDER BY kind LIMIT 1) FROM leap
    WHERE leap.kind IS NOT NULL
)
SELECT kind FROM leap WHERE kind IS NOT NULL;
ROLLBACK;

-- rowcall.effects.lists: COUNT_UNKNOWN
-- The index {table}_open.
BEGIN;
SELECT kind, count(*) AS unknown FROM (
    SELECT 'sent_emails' AS kind FROM rowcall.sent_emails
    WHERE state = 'unknown' LIMIT 1000
) AS sent_emails GROUP BY kind UNION ALL 
SELECT kind, count(*) AS unknown FROM (
    SELECT 'sent_reports' AS kind FROM rowcall.sent_reports
    WHERE state = 'unknown' LIMIT 1000
) AS sent_reports GROUP BY kind UNION ALL 
SELECT kind, count(*) AS unknown FROM (
    SELECT 'payments' AS kind FROM rowcall.payments
    WHERE state = 'unknown' LIMIT 1000
) AS payments GROUP BY kind UNION ALL 
SELECT kind, count(*) AS unknown FROM (
    SELECT 'delivered_webhooks' AS kind FROM rowcall.delivered_webhooks
    WHERE state = 'unknown' LIMIT 1000
) AS delivered_webhooks GROUP BY kind UNION ALL 
SELECT kind, count(*) AS unknown FROM (
    SELECT 'generated_files' AS kind FROM rowcall.generated_files
    WHERE state = 'unknown' LIMIT 1000
) AS generated_files GROUP BY kind UNION ALL 
SELECT kind, count(*) AS unknown FROM (
    SELECT kind FROM rowcall.other_effects
    WHERE state = 'unknown' LIMIT 1000
) AS other_effects GROUP BY kind;
ROLLBACK;

-- rowcall.effects.operate: OF_RUN
-- The index {table}_run of each table.
\set run_id '1'
BEGIN;
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE run_id = :'run_id' UNION ALL 
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE run_id = :'run_id' UNION ALL 
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE run_id = :'run_id' UNION ALL 
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE run_id = :'run_id' UNION ALL 
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE run_id = :'run_id' UNION ALL 
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE run_id = :'run_id';
ROLLBACK;

-- rowcall.effects.operate: LOCK[sent_emails]
\set id '1'
BEGIN;
SELECT 'sent_emails' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_emails WHERE id = :'id' FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: LOCK[sent_reports]
\set id '1'
BEGIN;
SELECT 'sent_reports' AS kind, id, concat_ws('/', user_id, week_start_date) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.sent_reports WHERE id = :'id' FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: LOCK[payments]
\set id '1'
BEGIN;
SELECT 'payments' AS kind, id, concat_ws('/', idempotency_key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.payments WHERE id = :'id' FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: LOCK[delivered_webhooks]
\set id '1'
BEGIN;
SELECT 'delivered_webhooks' AS kind, id, concat_ws('/', event_id) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.delivered_webhooks WHERE id = :'id' FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: LOCK[generated_files]
\set id '1'
BEGIN;
SELECT 'generated_files' AS kind, id, concat_ws('/', type, date, key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.generated_files WHERE id = :'id' FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: LOCK[other_effects]
\set id '1'
\set kind 'sms'
BEGIN;
SELECT kind, id, concat_ws('/', key) AS key, state, run_id, lease_no, generation,
    provider_reference AS reference, refusal, intent_at, applied_at
FROM rowcall.other_effects WHERE id = :'id' AND (:'kind'::text IS NULL OR kind = :'kind') FOR UPDATE;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[sent_emails]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.sent_emails SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[sent_reports]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.sent_reports SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[payments]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.payments SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[delivered_webhooks]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.delivered_webhooks SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[generated_files]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.generated_files SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.operate: HAPPENED[other_effects]
\set reference 'ch_1'
\set id '1'
BEGIN;
UPDATE rowcall.other_effects SET state = 'applied', provider_reference = coalesce(:'reference', provider_reference),
    applied_at = now(), updated_at = now()
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_emails].insert
\set idempotency_key 'welcome:1'
\set recipient 'ada@shop.example'
\set subject 'Welcome'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.sent_emails (idempotency_key, recipient, subject, content_hash, run_id, lease_no) VALUES (:'idempotency_key', :'recipient', :'subject', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_emails].find
\set horizon '86400'
\set idempotency_key 'welcome:1'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.sent_emails
WHERE idempotency_key = :'idempotency_key'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_emails].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.sent_emails
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_emails].apply
\set reference 'ch_1'
\set message_id '<1@shop.example>'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.sent_emails
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now(), message_id = :'message_id'
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_emails].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.sent_emails
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_reports].insert
\set user_id '1'
\set week_start_date '2026-01-05'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.sent_reports (user_id, week_start_date, content_hash, run_id, lease_no) VALUES (:'user_id', :'week_start_date', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (user_id, week_start_date) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_reports].find
\set horizon '86400'
\set user_id '1'
\set week_start_date '2026-01-05'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.sent_reports
WHERE user_id = :'user_id' AND week_start_date = :'week_start_date'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_reports].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.sent_reports
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_reports].apply
\set reference 'ch_1'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.sent_reports
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now()
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[sent_reports].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.sent_reports
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[payments].insert
\set idempotency_key 'welcome:1'
\set invoice_id '1'
\set amount_minor '1250'
\set currency 'EUR'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.payments (idempotency_key, invoice_id, amount_minor, currency, content_hash, run_id, lease_no) VALUES (:'idempotency_key', :'invoice_id', :'amount_minor', :'currency', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[payments].find
\set horizon '86400'
\set idempotency_key 'welcome:1'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.payments
WHERE idempotency_key = :'idempotency_key'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[payments].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.payments
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[payments].apply
\set reference 'ch_1'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.payments
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now()
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[payments].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.payments
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[delivered_webhooks].insert
\set event_id 'invoice-1-paid'
\set url 'https://shop.example/hook'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.delivered_webhooks (event_id, url, content_hash, run_id, lease_no) VALUES (:'event_id', :'url', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (event_id) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[delivered_webhooks].find
\set horizon '86400'
\set event_id 'invoice-1-paid'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.delivered_webhooks
WHERE event_id = :'event_id'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[delivered_webhooks].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.delivered_webhooks
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[delivered_webhooks].apply
\set reference 'ch_1'
\set response_status '200'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.delivered_webhooks
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now(), response_status = :'response_status'
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[delivered_webhooks].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.delivered_webhooks
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[generated_files].insert
\set type 'sales'
\set date '2026-01-05'
\set key 'welcome:1'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.generated_files (type, date, key, content_hash, run_id, lease_no) VALUES (:'type', :'date', :'key', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (type, date, key) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[generated_files].find
\set horizon '86400'
\set type 'sales'
\set date '2026-01-05'
\set key 'welcome:1'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.generated_files
WHERE type = :'type' AND date = :'date' AND key = :'key'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[generated_files].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.generated_files
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[generated_files].apply
\set reference 'ch_1'
\set path 'reports/1.pdf'
\set sha256 '9f86d081884c7d659a2feaa0c55ad015'
\set size_bytes '1024'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.generated_files
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now(), path = :'path', sha256 = :'sha256', size_bytes = :'size_bytes'
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[generated_files].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.generated_files
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[other_effects].insert
\set kind 'sms'
\set key 'welcome:1'
\set content_hash '9f86d081884c7d659a2feaa0c55ad015'
\set run_id '1'
\set lease_no '1'
BEGIN;
INSERT INTO rowcall.other_effects (kind, key, content_hash, run_id, lease_no) VALUES (:'kind', :'key', :'content_hash', :'run_id', :'lease_no')
ON CONFLICT (kind, key) DO NOTHING
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[other_effects].find
\set horizon '86400'
\set kind 'sms'
\set key 'welcome:1'
BEGIN;
SELECT *, coalesce(intent_at > now() - :'horizon' * interval '1 second', true) AS within_horizon
FROM rowcall.other_effects
WHERE kind = :'kind' AND key = :'key'
FOR UPDATE;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[other_effects].take
\set run_id '1'
\set lease_no '1'
\set anew 'false'
\set id '1'
BEGIN;
UPDATE rowcall.other_effects
SET state = 'intent', run_id = :'run_id', lease_no = :'lease_no', refusal = NULL, updated_at = now(),
    intent_at = CASE WHEN :'anew' THEN now() ELSE intent_at END
WHERE id = :'id'
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[other_effects].apply
\set reference 'ch_1'
\set id '1'
\set run_id '1'
\set lease_no '1'
BEGIN;
UPDATE rowcall.other_effects
SET state = 'applied', provider_reference = :'reference', applied_at = pg_catalog.now(),
    updated_at = pg_catalog.now()
WHERE id = :'id' AND run_id = :'run_id' AND lease_no = :'lease_no' AND state IN ('intent', 'applied')
RETURNING *;
ROLLBACK;

-- rowcall.effects.statements: STATEMENTS[other_effects].settle
\set state 'refused'
\set refusal 'declined'
\set permanent 'false'
\set id '1'
BEGIN;
UPDATE rowcall.other_effects
SET state = :'state', refusal = coalesce(:'refusal', refusal), updated_at = now(),
    generation = generation + CASE WHEN :'permanent' AND :'state' = 'refused' THEN 1 ELSE 0 END
WHERE id = :'id' AND state IN ('intent', 'unknown')
RETURNING *;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[retry, created]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('dead', 'cancelled') AND pruned_at IS NULL))
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[retry, failed]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('dead', 'cancelled') AND pruned_at IS NULL))
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[retry, definition]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set definition 'nightly'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('dead', 'cancelled') AND pruned_at IS NULL))
    ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY definition_id DESC, created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[retry, key]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set key 'welcome:1'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('dead', 'cancelled') AND pruned_at IS NULL))
    ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at + interval '0' DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[cancel, created]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('queued', 'failed')) OR (status IN ('running') AND cancel_requested_at IS NULL))
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[cancel, failed]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('queued', 'failed')) OR (status IN ('running') AND cancel_requested_at IS NULL))
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[cancel, definition]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set definition 'nightly'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('queued', 'failed')) OR (status IN ('running') AND cancel_requested_at IS NULL))
    ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY definition_id DESC, created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: PAGES[cancel, key]
-- (Action, scan) -> a page of the runs that the action can change.
\set milliseconds '5000'
\set waited '4000'
\set key 'welcome:1'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND ((status IN ('queued', 'failed')) OR (status IN ('running') AND cancel_requested_at IS NULL))
    ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at + interval '0' DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, created_at FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.bulk: CHANGE_MANY[retry]
-- Event -> the statement that changes many runs.
\set run_ids '{"1"}'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set who 'cli:me'
\set request_id 'request-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH matching AS MATERIALIZED (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(:'run_ids'::bigint[]) AND status IN ('dead', 'cancelled') AND pruned_at IS NULL AND (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE rowcall.job_runs SET 
    status = 'queued', attempts = 0, run_at = now(), finished_at = NULL, cancel_requested_at = NULL,
    last_error = NULL, error_type = NULL, failed_at = NULL, last_stack = NULL, progress = NULL, updated_at = now() WHERE id = ANY(ARRAY(SELECT id FROM matching)) RETURNING *
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
    SELECT :'who', 'retry', 'run', changed.id, jsonb_build_object('status', matching.status, 'attempts', matching.attempts, 'max_attempts', matching.max_attempts, 'lease_no', matching.lease_no, 'run_at', matching.run_at, 'locked_by', matching.locked_by, 'cancel_requested_at', matching.cancel_requested_at), jsonb_build_object('status', changed.status, 'attempts', changed.attempts, 'max_attempts', changed.max_attempts, 'lease_no', changed.lease_no, 'run_at', changed.run_at, 'locked_by', changed.locked_by, 'cancel_requested_at', changed.cancel_requested_at), :'request_id'
    FROM changed JOIN matching ON matching.id = changed.id ORDER BY changed.id
)
SELECT id, status FROM changed;
ROLLBACK;

-- rowcall.queue.bulk: CHANGE_MANY[cancel]
-- Event -> the statement that changes many runs.
\set run_ids '{"1"}'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set who 'cli:me'
\set request_id 'request-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH matching AS MATERIALIZED (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(:'run_ids'::bigint[]) AND status IN ('queued', 'failed') AND (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE rowcall.job_runs SET status = 'cancelled', finished_at = now(), updated_at = now() WHERE id = ANY(ARRAY(SELECT id FROM matching)) RETURNING *
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
    SELECT :'who', 'cancel', 'run', changed.id, jsonb_build_object('status', matching.status, 'attempts', matching.attempts, 'max_attempts', matching.max_attempts, 'lease_no', matching.lease_no, 'run_at', matching.run_at, 'locked_by', matching.locked_by, 'cancel_requested_at', matching.cancel_requested_at), jsonb_build_object('status', changed.status, 'attempts', changed.attempts, 'max_attempts', changed.max_attempts, 'lease_no', changed.lease_no, 'run_at', changed.run_at, 'locked_by', changed.locked_by, 'cancel_requested_at', changed.cancel_requested_at), :'request_id'
    FROM changed JOIN matching ON matching.id = changed.id ORDER BY changed.id
)
SELECT id, status FROM changed;
ROLLBACK;

-- rowcall.queue.bulk: CHANGE_MANY[ask to cancel]
-- Event -> the statement that changes many runs.
\set run_ids '{"1"}'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set who 'cli:me'
\set request_id 'request-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH matching AS MATERIALIZED (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(:'run_ids'::bigint[]) AND status IN ('running') AND cancel_requested_at IS NULL AND (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE rowcall.job_runs SET cancel_requested_at = coalesce(cancel_requested_at, now()), updated_at = now() WHERE id = ANY(ARRAY(SELECT id FROM matching)) RETURNING *
), audited AS (
    INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
    SELECT :'who', 'ask to cancel', 'run', changed.id, jsonb_build_object('status', matching.status, 'attempts', matching.attempts, 'max_attempts', matching.max_attempts, 'lease_no', matching.lease_no, 'run_at', matching.run_at, 'locked_by', matching.locked_by, 'cancel_requested_at', matching.cancel_requested_at), jsonb_build_object('status', changed.status, 'attempts', changed.attempts, 'max_attempts', changed.max_attempts, 'lease_no', changed.lease_no, 'run_at', changed.run_at, 'locked_by', changed.locked_by, 'cancel_requested_at', changed.cancel_requested_at), :'request_id'
    FROM changed JOIN matching ON matching.id = changed.id ORDER BY changed.id
)
SELECT id, status FROM changed;
ROLLBACK;

-- rowcall.queue.bulk: BY_NATURAL_KEY
\set run_ids '{"1"}'
BEGIN;
SELECT id FROM rowcall.job_runs WHERE id = ANY(:'run_ids'::bigint[]) ORDER BY natural_key COLLATE "C", id;
ROLLBACK;

-- rowcall.queue.cancel: CANCEL
\set run_id '1'
BEGIN;
UPDATE rowcall.job_runs SET status = 'cancelled', finished_at = now(), updated_at = now() WHERE id = :'run_id' AND status IN ('queued', 'failed') RETURNING *;
ROLLBACK;

-- rowcall.queue.cancel: ASK_TO_CANCEL
\set run_id '1'
BEGIN;
UPDATE rowcall.job_runs SET cancel_requested_at = coalesce(cancel_requested_at, now()), updated_at = now() WHERE id = :'run_id' AND status IN ('running') RETURNING *;
ROLLBACK;

-- rowcall.queue.cancel: FORCE_CANCEL
-- The lease_no is the one that the operator saw, so that the next attempt is not cut off by mistake.  The owner's fence
-- no longer matches.  `change` has locked the row, so the two parts see the same.
\set run_id '1'
\set lease_no '1'
BEGIN;
WITH held AS (
    SELECT id, locked_by AS worker FROM rowcall.job_runs
    WHERE id = :'run_id' AND lease_no = :'lease_no' AND status IN ('running')
), forced AS (
    UPDATE rowcall.job_runs AS run
    SET status = 'cancelled', finished_at = now(), updated_at = now(),
        cancel_requested_at = coalesce(run.cancel_requested_at, now()), locked_by = NULL, locked_until = NULL
    FROM held WHERE run.id = held.id
    RETURNING run.*
), ended AS (
    SELECT forced.id AS run_id, lease_no, attempts AS attempt, 'force cancel' AS outcome, worker, started_at,
        'Cancelled' AS error_type, 'cancelled by force' AS error, NULL AS stack, false AS permanent,
        NULL::jsonb AS forensics
    FROM forced JOIN held ON forced.id = held.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT * FROM forced;
ROLLBACK;

-- rowcall.queue.claims.claim: CLAIM
\set lane_queues '{"default"}'
\set lane_priorities '{"0"}'
\set lane_run_ats '{"-infinity"}'
\set lane_ids '{"0"}'
\set job_types '{"noop"}'
\set declared '{"mail": 2}'
\set queues '{"default"}'
\set limit '50'
\set worker 'worker-1'
\set leases '{"noop": 120}'
BEGIN;
WITH  lanes AS MATERIALIZED (
    SELECT known.queue, known.priority, known.turn, head.run_at, head.id FROM unnest(
        :'lane_queues'::text[], :'lane_priorities'::smallint[],
        :'lane_run_ats'::timestamptz[], :'lane_ids'::bigint[]
    ) WITH ORDINALITY AS known(queue, priority, run_at, id, turn) CROSS JOIN LATERAL (
        SELECT run_at, id FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
            AND (run_at, id) >= (known.run_at, known.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now())
        ORDER BY run_at, id LIMIT 1
    ) AS head
), due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (:'declared'::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (:'queues'::text[] IS NULL OR lanes.queue = ANY(:'queues'::text[]))
    ORDER BY lanes.turn
), first AS MATERIALIZED (
    SELECT due.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker, queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (due_lanes.run_at, due_lanes.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now() )
        ORDER BY run_at, id
        LIMIT :'limit' FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE due_lanes.max_running IS NULL
    LIMIT :'limit'
), seen AS MATERIALIZED (
    SELECT place, id, status, worker FROM first 
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended), claimed AS (
    UPDATE rowcall.job_runs AS run SET 
    status = 'running', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = :'worker',
    locked_until = now() + (:'leases'::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{share,note}'::text[], '{}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('queued', 'failed')))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.queue, run.priority, run.run_at
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::bigint[], NULL, NULL, NULL
FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT jsonb_agg(jsonb_build_array(queue, priority, run_at, id)) FROM due_lanes), (SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken),
    CASE WHEN (SELECT max_running IS NOT NULL FROM due_lanes LIMIT 1) THEN 'first'
         WHEN EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL) THEN 'later' END;
ROLLBACK;

-- rowcall.queue.claims.claim: FINISH_AND_CLAIM
\set lease_keys '{"1/1": 120}'
\set run_ids '{"1"}'
\set worker 'worker-1'
\set lane_queues '{"default"}'
\set lane_priorities '{"0"}'
\set lane_run_ats '{"-infinity"}'
\set lane_ids '{"0"}'
\set job_types '{"noop"}'
\set declared '{"mail": 2}'
\set queues '{"default"}'
\set limit '50'
\set leases '{"noop": 120}'
BEGIN;
WITH finished AS (
UPDATE rowcall.job_runs AS run
SET status = 'succeeded', result = nullif(:'lease_keys'::jsonb -> (run.id || '/' || run.lease_no), 'null'),
    finished_at = now(), updated_at = now(), locked_by = NULL, locked_until = NULL
WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
    AND run.status IN ('running')
RETURNING run.id
), lanes AS MATERIALIZED (
    SELECT known.queue, known.priority, known.turn, head.run_at, head.id FROM unnest(
        :'lane_queues'::text[], :'lane_priorities'::smallint[],
        :'lane_run_ats'::timestamptz[], :'lane_ids'::bigint[]
    ) WITH ORDINALITY AS known(queue, priority, run_at, id, turn) CROSS JOIN LATERAL (
        SELECT run_at, id FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
            AND (run_at, id) >= (known.run_at, known.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now())
        ORDER BY run_at, id LIMIT 1
    ) AS head
), due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (:'declared'::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (:'queues'::text[] IS NULL OR lanes.queue = ANY(:'queues'::text[]))
    ORDER BY lanes.turn
), first AS MATERIALIZED (
    SELECT due.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker, queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (due_lanes.run_at, due_lanes.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now() AND id <> ALL(:'run_ids'::bigint[]))
        ORDER BY run_at, id
        LIMIT :'limit' FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE due_lanes.max_running IS NULL
    LIMIT :'limit'
), seen AS MATERIALIZED (
    SELECT place, id, status, worker FROM first 
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended), claimed AS (
    UPDATE rowcall.job_runs AS run SET 
    status = 'running', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = :'worker',
    locked_until = now() + (:'leases'::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{share,note}'::text[], '{}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('queued', 'failed')))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.queue, run.priority, run.run_at
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::bigint[], NULL, NULL, NULL
FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT coalesce(array_agg(id), '{}') FROM finished), (SELECT jsonb_agg(jsonb_build_array(queue, priority, run_at, id)) FROM due_lanes), (SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken),
    CASE WHEN (SELECT max_running IS NOT NULL FROM due_lanes LIMIT 1) THEN 'first'
         WHEN EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL) THEN 'later' END;
ROLLBACK;

-- rowcall.queue.claims.claim: FINISH_AND_CLAIM_AHEAD
-- The same for more runs than there are slots.
\set lease_keys '{"1/1": 120}'
\set run_ids '{"1"}'
\set worker 'worker-1'
\set lane_queues '{"default"}'
\set lane_priorities '{"0"}'
\set lane_run_ats '{"-infinity"}'
\set lane_ids '{"0"}'
\set job_types '{"noop"}'
\set declared '{"mail": 2}'
\set queues '{"default"}'
\set limit '50'
\set quick_types '{"noop"}'
\set ahead '100'
\set leases '{"noop": 120}'
BEGIN;
WITH finished AS (
UPDATE rowcall.job_runs AS run
SET status = 'succeeded', result = nullif(:'lease_keys'::jsonb -> (run.id || '/' || run.lease_no), 'null'),
    finished_at = now(), updated_at = now(), locked_by = NULL, locked_until = NULL
WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
    AND run.status IN ('running')
RETURNING run.id
), lanes AS MATERIALIZED (
    SELECT known.queue, known.priority, known.turn, head.run_at, head.id FROM unnest(
        :'lane_queues'::text[], :'lane_priorities'::smallint[],
        :'lane_run_ats'::timestamptz[], :'lane_ids'::bigint[]
    ) WITH ORDINALITY AS known(queue, priority, run_at, id, turn) CROSS JOIN LATERAL (
        SELECT run_at, id FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
            AND (run_at, id) >= (known.run_at, known.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now())
        ORDER BY run_at, id LIMIT 1
    ) AS head
), due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (:'declared'::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (:'queues'::text[] IS NULL OR lanes.queue = ANY(:'queues'::text[]))
    ORDER BY lanes.turn
), first AS MATERIALIZED (
    SELECT due.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker, queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (due_lanes.run_at, due_lanes.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now() AND id <> ALL(:'run_ids'::bigint[]))
        ORDER BY run_at, id
        LIMIT :'limit' FOR UPDATE SKIP LOCKED
    ) AS due
    WHERE due_lanes.max_running IS NULL
    LIMIT :'limit'
), further AS MATERIALIZED (
    SELECT quick.* FROM due_lanes CROSS JOIN LATERAL (
        SELECT avg((max_attempts > 1 AND job_type = ANY(:'quick_types'::text[]))::integer) AS share, (array_agg(run_at))[1] AS run_at, (array_agg(id))[1] AS id FROM (
            SELECT max_attempts, job_type, run_at, id FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
                AND 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 AND (run_at, id) > (
                    SELECT coalesce(max(run_at), due_lanes.run_at), coalesce(max(id), due_lanes.id - 1) FROM (
                        SELECT run_at, id FROM first WHERE (queue, priority) = (due_lanes.queue, due_lanes.priority)
                        ORDER BY run_at DESC, id DESC LIMIT 1
                    ) AS last
                )
            ORDER BY run_at, id LIMIT 20
        ) AS probed
    ) AS head CROSS JOIN LATERAL (
        SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = due_lanes.queue AND priority = due_lanes.priority AND run_at <= now()
            AND (run_at, id) >= (head.run_at, head.id) AND 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 AND max_attempts > 1 AND job_type = ANY(:'quick_types'::text[])
        ORDER BY run_at, id
        LIMIT :'ahead' FOR UPDATE SKIP LOCKED
    ) AS quick
    WHERE due_lanes.max_running IS NULL AND head.share >= 0.5
    LIMIT :'ahead'
), seen AS MATERIALIZED (
    SELECT place, id, status, worker FROM first UNION ALL SELECT * FROM further
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended), claimed AS (
    UPDATE rowcall.job_runs AS run SET 
    status = 'running', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = :'worker',
    locked_until = now() + (:'leases'::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{share,note}'::text[], '{}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('queued', 'failed')))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.queue, run.priority, run.run_at
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::bigint[], NULL, NULL, NULL
FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT coalesce(array_agg(id), '{}') FROM finished), (SELECT jsonb_agg(jsonb_build_array(queue, priority, run_at, id)) FROM due_lanes), (SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken),
    CASE WHEN (SELECT max_running IS NOT NULL FROM due_lanes LIMIT 1) THEN 'first'
         WHEN EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL) THEN 'later' END;
ROLLBACK;

-- rowcall.queue.claims.claim_limited: CLAIM_LIMITED
\set lane_queues '{"default"}'
\set lane_priorities '{"0"}'
\set lane_run_ats '{"-infinity"}'
\set lane_ids '{"0"}'
\set job_types '{"noop"}'
\set declared '{"mail": 2}'
\set queues '{"default"}'
\set limit '50'
\set worker 'worker-1'
\set leases '{"noop": 120}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE lanes AS MATERIALIZED (
    SELECT known.queue, known.priority, known.turn, head.run_at, head.id FROM unnest(
        :'lane_queues'::text[], :'lane_priorities'::smallint[],
        :'lane_run_ats'::timestamptz[], :'lane_ids'::bigint[]
    ) WITH ORDINALITY AS known(queue, priority, run_at, id, turn) CROSS JOIN LATERAL (
        SELECT run_at, id FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
            AND (run_at, id) >= (known.run_at, known.id) AND (
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 OR status IN ('running') AND locked_until < now())
        ORDER BY run_at, id LIMIT 1
    ) AS head
), due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (:'declared'::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (:'queues'::text[] IS NULL OR lanes.queue = ANY(:'queues'::text[]))
), open_queues AS MATERIALIZED (
    SELECT queues.name, queues.holders FROM rowcall.queues JOIN rowcall.queues AS before USING (name, holders)
    WHERE queues.name IN (SELECT queue FROM due_lanes WHERE max_running IS NOT NULL)
    FOR UPDATE OF queues SKIP LOCKED
), holders AS MATERIALIZED (
    SELECT open_queues.name, run.id, run.locked_by
    FROM open_queues CROSS JOIN LATERAL unnest(open_queues.holders) AS holder(run_id)
    JOIN rowcall.job_runs AS run ON run.id = holder.run_id AND run.status = 'running'
), over AS MATERIALIZED (
    SELECT ctid AS place, id, queue, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT id FROM holders)) AND status IN ('running') AND locked_until < now()
    FOR UPDATE SKIP LOCKED
), lanes_with_room AS (
    SELECT due_lanes.*, least(:'limit',
        due_lanes.max_running - (SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)) AS room
    FROM due_lanes LEFT JOIN open_queues ON open_queues.name = due_lanes.queue
    WHERE open_queues.name IS NOT NULL 
), due AS MATERIALIZED (
    SELECT found.*, lanes_with_room.room FROM lanes_with_room CROSS JOIN LATERAL (
        SELECT ctid AS place, id, queue, status, locked_by AS worker, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes_with_room.queue AND priority = lanes_with_room.priority
            AND run_at <= now() AND (run_at, id) >= (lanes_with_room.run_at, lanes_with_room.id) AND 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0
        ORDER BY run_at, id
        LIMIT greatest(lanes_with_room.room, 0) FOR UPDATE SKIP LOCKED
    ) AS found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY queue ORDER BY priority, run_at, id) AS position,
        array_position(:'lane_queues'::text[], queue) AS turn
    FROM due
), seen AS MATERIALIZED (
    SELECT place, id, queue, status, worker FROM over
    UNION ALL
    (SELECT place, id, queue, status, worker FROM ranked WHERE position <= room
     ORDER BY turn, priority, run_at, id LIMIT :'limit')
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended), claimed AS (
    UPDATE rowcall.job_runs AS run SET 
    status = 'running', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = :'worker',
    locked_until = now() + (:'leases'::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{share,note}'::text[], '{}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('queued', 'failed')))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.queue, run.priority, run.run_at, run.suspect
), noted AS (
    UPDATE rowcall.queues SET holders = ARRAY(
        SELECT holders.id FROM holders WHERE holders.name = queues.name AND holders.id NOT IN (SELECT id FROM over)
        UNION ALL
        SELECT seen.id FROM seen WHERE seen.queue = queues.name AND seen.id NOT IN (SELECT id FROM over)
    )
    FROM open_queues WHERE queues.name = open_queues.name
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::jsonb, NULL,
    NULL, NULL
FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken),
    EXISTS (SELECT FROM due_lanes WHERE max_running > 0 AND queue NOT IN (SELECT name FROM open_queues)), NULL::integer, NULL::integer;
ROLLBACK;

-- rowcall.queue.claims.lanes: FIND_LANES
-- The lanes in which something is due, perhaps not for this worker, the urgent first.
\set queues '{"default"}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE 
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL  ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL  AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
)
SELECT queue, priority FROM lanes
WHERE run_at <= now() AND (:'queues'::text[] IS NULL OR queue = ANY(:'queues'::text[]))
ORDER BY priority, run_at;
ROLLBACK;

-- rowcall.queue.claims.stranded: HELD
-- What this worker has under a lease, as far as the lanes from which it claimed can tell, and all of its suspects.
\set lane_queues '{"default"}'
\set lane_priorities '{"0"}'
\set lane_run_ats '{"-infinity"}'
\set lane_ids '{"0"}'
\set worker 'worker-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
SELECT run.id, run.lease_no FROM unnest(
    :'lane_queues'::text[], :'lane_priorities'::smallint[], :'lane_run_ats'::timestamptz[], :'lane_ids'::bigint[]
) AS known(queue, priority, run_at, id) CROSS JOIN LATERAL (
    SELECT id, lease_no, status, locked_by, suspect FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = known.queue AND priority = known.priority AND run_at <= now()
        AND (run_at, id) >= (known.run_at, known.id)
    ORDER BY run_at, id LIMIT 5000
) AS run
WHERE run.status IN ('running') AND run.locked_by = :'worker' AND run.suspect = 0
UNION ALL
SELECT id, lease_no FROM rowcall.job_runs
WHERE finished_at IS NULL AND suspect > 0 AND status IN ('running') AND locked_by = :'worker';
ROLLBACK;

-- rowcall.queue.claims.suspects: CLAIM_SUSPECT
-- One suspect, the one that has waited longest, whatever its queue.  Suspects are few: job_runs_suspect holds no others.
-- The last row tells how many leases the claimed one has lost.  If none was claimed, it tells the most that one has lost
-- which is due, and waits for a worker that has nothing else, or for the place under a limit that this worker's run has.
\set declared '{"mail": 2}'
\set queues '{"default"}'
\set limit '50'
\set job_types '{"noop"}'
\set alone 'false'
\set lane_queues '{"default"}'
\set worker 'worker-1'
\set leases '{"noop": 120}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE 
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL AND suspect > 0 ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND suspect > 0 AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
), due_lanes AS MATERIALIZED (
    SELECT lanes.*, least(queues.max_running, (:'declared'::jsonb ->> lanes.queue)::integer) AS max_running
    FROM lanes LEFT JOIN rowcall.queues ON queues.name = lanes.queue
    WHERE lanes.run_at <= now() AND queues.paused_at IS NULL
        AND (:'queues'::text[] IS NULL OR lanes.queue = ANY(:'queues'::text[]))
), open_queues AS MATERIALIZED (
    SELECT queues.name, queues.holders FROM rowcall.queues JOIN rowcall.queues AS before USING (name, holders)
    WHERE queues.name IN (SELECT queue FROM due_lanes WHERE max_running IS NOT NULL)
    FOR UPDATE OF queues SKIP LOCKED
), holders AS MATERIALIZED (
    SELECT open_queues.name, run.id, run.locked_by
    FROM open_queues CROSS JOIN LATERAL unnest(open_queues.holders) AS holder(run_id)
    JOIN rowcall.job_runs AS run ON run.id = holder.run_id AND run.status = 'running'
), over AS MATERIALIZED (
    SELECT ctid AS place, id, queue, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT id FROM holders)) AND status IN ('running') AND locked_until < now()
    FOR UPDATE SKIP LOCKED
), lanes_with_room AS (
    SELECT due_lanes.*, least(:'limit',
        due_lanes.max_running - (SELECT count(*) FROM holders WHERE holders.name = due_lanes.queue)) AS room
    FROM due_lanes LEFT JOIN open_queues ON open_queues.name = due_lanes.queue
    WHERE open_queues.name IS NOT NULL OR due_lanes.max_running IS NULL
), due AS MATERIALIZED (
    SELECT found.*, lanes_with_room.room FROM lanes_with_room CROSS JOIN LATERAL (
        SELECT ctid AS place, id, queue, status, locked_by AS worker, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes_with_room.queue AND priority = lanes_with_room.priority
            AND run_at <= now() AND (run_at, id) >= ('-infinity'::timestamptz, 0) AND 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect > 0 AND (suspect < 2 OR :'alone')
        ORDER BY run_at, id
        LIMIT greatest(lanes_with_room.room, 0) FOR UPDATE SKIP LOCKED
    ) AS found
), ranked AS (
    SELECT due.*, row_number() OVER (PARTITION BY queue ORDER BY priority, run_at, id) AS position,
        array_position(:'lane_queues'::text[], queue) AS turn
    FROM due
), seen AS MATERIALIZED (
    SELECT place, id, queue, status, worker FROM over
    UNION ALL
    (SELECT place, id, queue, status, worker FROM ranked WHERE position <= room
     ORDER BY run_at, id LIMIT :'limit')
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended), claimed AS (
    UPDATE rowcall.job_runs AS run SET 
    status = 'running', attempts = run.attempts + 1, lease_no = run.lease_no + 1, locked_by = :'worker',
    locked_until = now() + (:'leases'::jsonb ->> run.job_type)::float8 * interval '1 second',
    started_at = now(), updated_at = now(), progress = nullif(run.progress - '{share,note}'::text[], '{}')
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('queued', 'failed')))
    RETURNING run.id, run.lease_no, run.job_type, run.payload, run.attempts, run.max_attempts, run.scheduled_for,
        run.status, run.queue, run.priority, run.run_at, run.suspect
), noted AS (
    UPDATE rowcall.queues SET holders = ARRAY(
        SELECT holders.id FROM holders WHERE holders.name = queues.name AND holders.id NOT IN (SELECT id FROM over)
        UNION ALL
        SELECT seen.id FROM seen WHERE seen.queue = queues.name AND seen.id NOT IN (SELECT id FROM over)
    )
    FROM open_queues WHERE queues.name = open_queues.name
), answer AS (
    SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, priority, run_at FROM claimed
    UNION ALL
    SELECT id, lease_no, job_type, NULL, attempts, max_attempts, scheduled_for, status, priority, run_at FROM expired
    ORDER BY priority, run_at, id
)
SELECT id, lease_no, job_type, payload, attempts, max_attempts, scheduled_for, status, NULL::jsonb, NULL,
    NULL, NULL
FROM answer
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT jsonb_agg(jsonb_build_array(queue, priority, runs))
     FROM (SELECT queue, priority, count(*) AS runs FROM claimed GROUP BY queue, priority) AS taken),
    EXISTS (SELECT FROM due_lanes WHERE max_running > 0 AND queue NOT IN (SELECT name FROM open_queues)), (SELECT suspect FROM claimed), (SELECT max(suspect) FROM (
        SELECT run.suspect FROM lanes_with_room JOIN rowcall.job_runs AS run USING (queue, priority)
        WHERE NOT EXISTS (SELECT FROM claimed) AND (lanes_with_room.room > 0
                OR EXISTS (SELECT FROM holders WHERE holders.name = run.queue AND holders.locked_by = :'worker'))
            AND run.finished_at IS NULL AND run.suspect > 0 AND run.run_at <= now() AND 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[])
        ORDER BY run.suspect DESC LIMIT 1 FOR UPDATE OF run SKIP LOCKED
    ) AS waiting);
ROLLBACK;

-- rowcall.queue.claims.sweep: SWEEP
-- Reads as: walk the lanes, end the leases that ran out on the way.
--
-- lanes    One after another, from the place on where the last sweep stopped: what lies before it, dead index entries
--          included, is not walked again.  Of each the next runs, in the order of job_runs_live.  No index holds the
--          status, so that claims and heartbeats stay heap-only updates: the rows are read one by one, a bounded number.
-- seen     Those whose lease ran out.  Rows that others have locked are skipped: they are being ended or renewed.
-- answer   Each run whose lease was ended, and last a row with the lanes: of each the first run that this worker may
--          claim, the last one looked at, and whether the lane goes on behind it.
\set after_run_at '-infinity'
\set after_id '0'
\set after_queue ''
\set after_priority '-32768'
\set declared '{"mail": 2}'
\set most '20000'
\set job_types '{"noop"}'
\set queues '{"default"}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE lanes AS (
    SELECT next.queue, next.priority, learned.* FROM (
        SELECT queue, priority, is_same,
            CASE WHEN is_same THEN :'after_run_at'::timestamptz ELSE '-infinity' END AS after_run_at,
            CASE WHEN is_same THEN :'after_id'::bigint ELSE 0 END AS after_id
        FROM (
            SELECT queue, priority, (queue, priority) = (:'after_queue', (:'after_priority')::smallint) AS is_same
            FROM rowcall.job_runs
            WHERE finished_at IS NULL AND (queue, priority, run_at, id) > (
                :'after_queue', (:'after_priority')::smallint, :'after_run_at'::timestamptz, :'after_id'::bigint)
            ORDER BY queue, priority, run_at, id LIMIT 1
        ) AS found
    ) AS next CROSS JOIN LATERAL (
        SELECT 0 + count(*) AS walked, array_agg(id) FILTER (WHERE is_over) AS over,
            min(run_at) FILTER (WHERE is_claimable) AS run_at, (array_agg(id) FILTER (WHERE is_claimable))[1] AS id,
            max(run_at) AS until_run_at, (array_agg(id))[count(*)] AS until_id,
            count(*) = max(most) AND (bool_or(is_closed) OR NOT bool_or(is_claimable)) AS has_more
        FROM (
            SELECT coalesce(bool_or(paused_at IS NOT NULL OR max_running IS NOT NULL), false)
                OR :'declared'::jsonb ? next.queue AS is_closed
            FROM rowcall.queues WHERE name = next.queue
        ) AS state CROSS JOIN LATERAL (
            SELECT CASE WHEN is_closed OR next.is_same THEN :'most' - 0
                ELSE least(1000, :'most' - 0) END AS most
        ) AS bound CROSS JOIN LATERAL (
            SELECT id, run_at, status IN ('running') AND locked_until < now() AS is_over, 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 AS is_claimable FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = next.queue AND priority = next.priority AND run_at <= now()
                AND (run_at, id) > (next.after_run_at, next.after_id)
                AND (:'queues'::text[] IS NULL OR next.queue = ANY(:'queues'::text[]))
            ORDER BY run_at, id LIMIT bound.most
        ) AS run
    ) AS learned
    UNION ALL
    SELECT next.queue, next.priority, learned.* FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, false AS is_same, '-infinity'::timestamptz AS after_run_at, 0 AS after_id
        FROM rowcall.job_runs
        WHERE finished_at IS NULL AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next CROSS JOIN LATERAL (
        SELECT lanes.walked + count(*) AS walked, array_agg(id) FILTER (WHERE is_over) AS over,
            min(run_at) FILTER (WHERE is_claimable) AS run_at, (array_agg(id) FILTER (WHERE is_claimable))[1] AS id,
            max(run_at) AS until_run_at, (array_agg(id))[count(*)] AS until_id,
            count(*) = max(most) AND (bool_or(is_closed) OR NOT bool_or(is_claimable)) AS has_more
        FROM (
            SELECT coalesce(bool_or(paused_at IS NOT NULL OR max_running IS NOT NULL), false)
                OR :'declared'::jsonb ? next.queue AS is_closed
            FROM rowcall.queues WHERE name = next.queue
        ) AS state CROSS JOIN LATERAL (
            SELECT CASE WHEN is_closed OR next.is_same THEN :'most' - lanes.walked
                ELSE least(1000, :'most' - lanes.walked) END AS most
        ) AS bound CROSS JOIN LATERAL (
            SELECT id, run_at, status IN ('running') AND locked_until < now() AS is_over, 
    status IN ('queued', 'failed') AND attempts < max_attempts AND job_type = ANY(:'job_types'::text[]) AND suspect = 0 AS is_claimable FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = next.queue AND priority = next.priority AND run_at <= now()
                AND (run_at, id) > (next.after_run_at, next.after_id)
                AND (:'queues'::text[] IS NULL OR next.queue = ANY(:'queues'::text[]))
            ORDER BY run_at, id LIMIT bound.most
        ) AS run
    ) AS learned
    WHERE lanes.has_more IS NOT TRUE AND lanes.walked < :'most'
), seen AS MATERIALIZED (
    SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(SELECT unnest(over) FROM lanes)) AND status IN ('running') AND locked_until < now()
    FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT id, status, NULL AS lanes FROM expired
UNION ALL
SELECT NULL, NULL, (
    SELECT jsonb_agg(jsonb_build_array(
        queue, priority, run_at, id, until_run_at, until_id, coalesce(has_more, false), walked))
    FROM lanes);
ROLLBACK;

-- rowcall.queue.clone: CLONE
-- The occurrence stays the original's, and so does a natural key that it holds.  A pruned run has no content to enqueue
-- again.
\set payload '{"user_id": 1}'
\set queue 'default'
\set priority '0'
\set run_at '2026-01-05T12:00:00+00:00'
\set max_attempts '5'
\set natural_key 'welcome:1'
\set unique_mode 'ever'
\set content_fingerprint '9f86d081884c7d659a2feaa0c55ad015'
\set key 'welcome:1'
\set key_owner 'app'
\set request_fingerprint '9f86d081884c7d659a2feaa0c55ad015'
\set who 'cli:me'
\set run_id '1'
BEGIN;
INSERT INTO rowcall.job_runs
    (id, job_type, payload, queue, priority, run_at, max_attempts, natural_key, unique_mode, content_fingerprint,
     idempotency_key, key_owner, request_fingerprint, created_by, status)
OVERRIDING SYSTEM VALUE

SELECT pg_catalog.nextval('rowcall.job_runs_id_seq'), job_type, coalesce(:'payload'::jsonb, payload), coalesce(:'queue', queue),
    coalesce(:'priority', priority),
    coalesce(:'run_at'::timestamptz, now()), coalesce(:'max_attempts', max_attempts),
    :'natural_key', :'unique_mode', :'content_fingerprint',
    :'key', :'key_owner', :'request_fingerprint',
    :'who', 'queued'
FROM rowcall.job_runs WHERE id = :'run_id' AND pruned_at IS NULL
ON CONFLICT DO NOTHING
RETURNING id, CASE WHEN run_at OPERATOR(pg_catalog.<=) pg_catalog.now() THEN rowcall.wake(queue, job_type) END AS woken;
ROLLBACK;

-- rowcall.queue.enqueue: ENQUEUE_ONE
-- For one run: planning the statement for ten thousand takes longer than inserting one.
\set job_type 'noop'
\set payload '{"user_id": 1}'
\set queue 'default'
\set priority '0'
\set run_at '2026-01-05T12:00:00+00:00'
\set max_attempts '5'
\set natural_key 'welcome:1'
\set unique_mode 'ever'
\set content_fingerprint '9f86d081884c7d659a2feaa0c55ad015'
\set key 'welcome:1'
\set key_owner 'app'
\set request_fingerprint '9f86d081884c7d659a2feaa0c55ad015'
\set created_by 'cli:me'
BEGIN;
INSERT INTO rowcall.job_runs
    (id, job_type, payload, queue, priority, run_at, max_attempts, natural_key, unique_mode, content_fingerprint,
     idempotency_key, key_owner, request_fingerprint, created_by, status)
OVERRIDING SYSTEM VALUE

VALUES (DEFAULT, :'job_type', :'payload'::pg_catalog.jsonb, :'queue', :'priority',
        coalesce(:'run_at'::pg_catalog.timestamptz, pg_catalog.now()), :'max_attempts',
        :'natural_key', :'unique_mode', :'content_fingerprint',
        :'key', :'key_owner', :'request_fingerprint',
        :'created_by', 'queued')
ON CONFLICT DO NOTHING
RETURNING id, 1 AS position, CASE WHEN run_at OPERATOR(pg_catalog.<=) pg_catalog.now() THEN rowcall.wake(:'queue', :'job_type') END AS woken;
ROLLBACK;

-- rowcall.queue.enqueue: ENQUEUE_MANY
-- Ids are drawn in the order of the requests, so that the first one goes first.  Rows are inserted in the order of their
-- keys, so that callers with the same keys cannot deadlock.
\set payloads '{"{\\"user_id\\": 1}"}'
\set natural_keys '{"welcome:1"}'
\set content_fingerprints '{"9f86d081884c7d659a2feaa0c55ad015"}'
\set keys '{"welcome:1"}'
\set request_fingerprints '{"9f86d081884c7d659a2feaa0c55ad015"}'
\set job_type 'noop'
\set queue 'default'
\set priority '0'
\set run_at '2026-01-05T12:00:00+00:00'
\set max_attempts '5'
\set unique_mode 'ever'
\set key_owner 'app'
\set created_by 'cli:me'
BEGIN;
WITH request AS MATERIALIZED (
    SELECT pg_catalog.nextval('rowcall.job_runs_id_seq') AS id, given.*
    FROM ROWS FROM (
        pg_catalog.unnest(:'payloads'::pg_catalog.jsonb[]), pg_catalog.unnest(:'natural_keys'::pg_catalog.text[]),
        pg_catalog.unnest(:'content_fingerprints'::pg_catalog.text[]), pg_catalog.unnest(:'keys'::pg_catalog.text[]),
        pg_catalog.unnest(:'request_fingerprints'::pg_catalog.text[])
    ) WITH ORDINALITY AS given(payload, natural_key, content_fingerprint, key, request_fingerprint, position)
    ORDER BY position
), new AS (

INSERT INTO rowcall.job_runs
    (id, job_type, payload, queue, priority, run_at, max_attempts, natural_key, unique_mode, content_fingerprint,
     idempotency_key, key_owner, request_fingerprint, created_by, status)
OVERRIDING SYSTEM VALUE

SELECT request.id, :'job_type', request.payload, :'queue', :'priority',
       coalesce(:'run_at'::pg_catalog.timestamptz, pg_catalog.now()), :'max_attempts',
       request.natural_key, :'unique_mode', request.content_fingerprint,
       request.key, :'key_owner', request.request_fingerprint,
       :'created_by', 'queued'
FROM request
ORDER BY request.natural_key COLLATE pg_catalog."C", request.key COLLATE pg_catalog."C", request.position
ON CONFLICT DO NOTHING
RETURNING id, run_at OPERATOR(pg_catalog.<=) pg_catalog.now() AS is_due
), woken AS MATERIALIZED (
    SELECT rowcall.wake(:'queue', :'job_type') FROM new WHERE is_due LIMIT 1
)
SELECT new.id, request.position, (SELECT pg_catalog.count(*) FROM woken) AS woken
FROM new JOIN request ON request.id OPERATOR(pg_catalog.=) new.id;
ROLLBACK;

-- rowcall.queue.finish: SUCCEED
-- Many at once: the primary key finds each row, and the fence decides.  A success writes no history.
\set lease_keys '{"1/1": 120}'
\set run_ids '{"1"}'
\set worker 'worker-1'
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL intervalstyle = postgres;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
UPDATE rowcall.job_runs AS run
SET status = 'succeeded', result = nullif(:'lease_keys'::jsonb -> (run.id || '/' || run.lease_no), 'null'),
    finished_at = now(), updated_at = now(), locked_by = NULL, locked_until = NULL
WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
    AND run.status IN ('running')
RETURNING run.id;
ROLLBACK;

-- rowcall.queue.finish: FAIL
-- Whatever ends an attempt whose run was asked to stop, success excepted, ends the run as cancelled.
-- What the run's row shows of the latest attempt that failed.
-- An attempt that its worker ends has not killed it.  But the run stays a suspect until it succeeds, or for an hour, so
-- that it does not meet the run again that may have cost it its lease: that one is a suspect too.
-- What HISTORY takes of an attempt whose owner ends it, besides its number and how it ended.
-- Every attempt that did not end in success is written here and nowhere else.  The statement around it names the
-- attempts that it ends `ended`, with these columns.
\set delay '30'
\set error 'the mail server is away'
\set error_type 'GatewayError'
\set stack 'Traceback (most recent call last): ...'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
\set permanent 'false'
\set forensics '{"signal": "SIGKILL"}'
BEGIN;
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'failed' END,
        finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL THEN now() END,
        run_at = CASE WHEN run.cancel_requested_at IS NOT NULL THEN run.run_at ELSE now() + :'delay' * interval '1 second' END, last_error = :'error', error_type = :'error_type', last_stack = :'stack', failed_at = now(),
        suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
        AND run.status IN ('running') AND run.attempts < run.max_attempts
    RETURNING run.status, run.attempts AS attempt, 'fail' AS outcome, run.id AS run_id, run.lease_no, :'worker' AS worker, run.started_at, :'error_type' AS error_type,
        :'error' AS error, :'stack' AS stack, :'permanent'::boolean AS permanent,
        :'forensics'::jsonb AS forensics
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT status FROM ended;
ROLLBACK;

-- rowcall.queue.finish: GIVE_UP
-- Whatever ends an attempt whose run was asked to stop, success excepted, ends the run as cancelled.
-- What the run's row shows of the latest attempt that failed.
-- An attempt that its worker ends has not killed it.  But the run stays a suspect until it succeeds, or for an hour, so
-- that it does not meet the run again that may have cost it its lease: that one is a suspect too.
-- What HISTORY takes of an attempt whose owner ends it, besides its number and how it ended.
-- Every attempt that did not end in success is written here and nowhere else.  The statement around it names the
-- attempts that it ends `ended`, with these columns.
\set error 'the mail server is away'
\set error_type 'GatewayError'
\set stack 'Traceback (most recent call last): ...'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
\set permanent 'false'
\set forensics '{"signal": "SIGKILL"}'
BEGIN;
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'dead' END, finished_at = now(), last_error = :'error', error_type = :'error_type', last_stack = :'stack', failed_at = now(),
        suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
        AND run.status IN ('running')
    RETURNING run.status, run.attempts AS attempt, 'give up' AS outcome, run.id AS run_id, run.lease_no, :'worker' AS worker, run.started_at, :'error_type' AS error_type,
        :'error' AS error, :'stack' AS stack, :'permanent'::boolean AS permanent,
        :'forensics'::jsonb AS forensics
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT status FROM ended;
ROLLBACK;

-- rowcall.queue.finish: RELEASE
-- A stopping worker returns the run.  run_at stays, so it is due at once.  An attempt that was begun stays counted,
-- because nobody knows what the handler had already done; an attempt that was not begun is not counted.
\set error 'the mail server is away'
\set error_type 'GatewayError'
\set stack 'Traceback (most recent call last): ...'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
\set permanent 'false'
\set forensics '{"signal": "SIGKILL"}'
BEGIN;
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                      WHEN run.attempts < run.max_attempts THEN 'queued' ELSE 'dead' END,
        finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END, last_error = :'error', error_type = :'error_type', last_stack = :'stack', failed_at = now(),
        suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
        AND run.status IN ('running')
    RETURNING run.status, run.attempts AS attempt, 'release' AS outcome, run.id AS run_id, run.lease_no, :'worker' AS worker, run.started_at, :'error_type' AS error_type,
        :'error' AS error, :'stack' AS stack, :'permanent'::boolean AS permanent,
        :'forensics'::jsonb AS forensics
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT status FROM ended;
ROLLBACK;

-- rowcall.queue.finish: SNOOZE
-- The handler itself asked to wait, so its attempt does not count; lease_no stays, as always.  Of several in a row the
-- history keeps the last: a handler may ask again and again for days.
\set until '2027-01-05T12:00:00+00:00'
\set pause '15'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
\set error_type 'GatewayError'
\set error 'the mail server is away'
\set stack 'Traceback (most recent call last): ...'
\set permanent 'false'
\set forensics '{"signal": "SIGKILL"}'
BEGIN;
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'queued' END,
        finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL THEN now() END,
        run_at = CASE WHEN run.cancel_requested_at IS NOT NULL THEN run.run_at
                      ELSE greatest(:'until'::timestamptz, now() + :'pause' * interval '1 second') END,
        attempts = run.attempts - 1,
        suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
        AND run.status IN ('running')
    RETURNING run.status, run.attempts + 1 AS attempt, 'snooze' AS outcome, run.id AS run_id, run.lease_no, :'worker' AS worker, run.started_at, :'error_type' AS error_type,
        :'error' AS error, :'stack' AS stack, :'permanent'::boolean AS permanent,
        :'forensics'::jsonb AS forensics
), replaced AS (
    DELETE FROM rowcall.job_attempts AS earlier USING ended
    WHERE earlier.run_id = ended.run_id AND earlier.outcome = 'snooze' AND earlier.lease_no = (
        SELECT lease_no FROM rowcall.job_attempts WHERE run_id = ended.run_id ORDER BY lease_no DESC LIMIT 1)
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT status FROM ended;
ROLLBACK;

-- rowcall.queue.finish: CANCELLED
-- An attempt that its worker ends has not killed it.  But the run stays a suspect until it succeeds, or for an hour, so
-- that it does not meet the run again that may have cost it its lease: that one is a suspect too.
-- Whatever ends an attempt whose run was asked to stop, success excepted, ends the run as cancelled.
-- What HISTORY takes of an attempt whose owner ends it, besides its number and how it ended.
-- Every attempt that did not end in success is written here and nowhere else.  The statement around it names the
-- attempts that it ends `ended`, with these columns.
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
\set error_type 'GatewayError'
\set error 'the mail server is away'
\set stack 'Traceback (most recent call last): ...'
\set permanent 'false'
\set forensics '{"signal": "SIGKILL"}'
BEGIN;
WITH ended AS (
    UPDATE rowcall.job_runs AS run
    SET status = 'cancelled', finished_at = now(),
        suspect = CASE WHEN run.failed_at < now() - interval '1 hour' THEN 0 ELSE least(run.suspect, 1) END, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
        AND run.status IN ('running') AND run.cancel_requested_at IS NOT NULL
    RETURNING run.status, run.attempts AS attempt, 'cancelled' AS outcome, run.id AS run_id, run.lease_no, :'worker' AS worker, run.started_at, :'error_type' AS error_type,
        :'error' AS error, :'stack' AS stack, :'permanent'::boolean AS permanent,
        :'forensics'::jsonb AS forensics
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT status FROM ended;
ROLLBACK;

-- rowcall.queue.finish: UNCLAIM
-- For runs that a worker had claimed ahead and never began: as if they had not been claimed, but for the lease_no.  Idle
-- workers are woken, because they can begin them.  It waits for no locked row, whose lease runs out by itself.
\set run_ids '{"1"}'
\set lease_keys '{"1/1": 120}'
\set worker 'worker-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH unlocked AS (SELECT run.id FROM rowcall.job_runs AS run WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
        AND run.status IN ('running') FOR NO KEY UPDATE SKIP LOCKED)
UPDATE rowcall.job_runs AS run
SET status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'queued' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL THEN now() END, attempts = run.attempts - 1,
    locked_by = NULL, locked_until = NULL, updated_at = now()
WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked)) AND run.status IN ('running')
RETURNING run.id, pg_catalog.pg_notify('rowcall_due', '') AS woken;
ROLLBACK;

-- rowcall.queue.fragments: WAKE_WORKERS
-- The same as a statement of its own, behind one that made something due.
BEGIN;
SELECT pg_catalog.pg_notify('rowcall_due', '');
ROLLBACK;

-- rowcall.queue.holders: FIND_HOLDERS
-- A statement of its own: the INSERT's snapshot is older than the winner it has just lost to.  The run may not
-- have reached the synchronous standby yet: the message makes the commit wait for it, which otherwise wrote nothing.
-- The two unique indexes, one after the other.
\set job_type 'noop'
\set natural_keys '{"welcome:1"}'
\set key_owner 'app'
\set keys '{"welcome:1"}'
BEGIN;
SELECT id, held_key AS natural_key, NULL AS key, content_fingerprint AS fingerprint,
    pg_catalog.pg_logical_emit_message(true, 'rowcall', '') AS replicated
FROM rowcall.job_runs
WHERE job_type OPERATOR(pg_catalog.=) :'job_type' AND held_key OPERATOR(pg_catalog.=) ANY(:'natural_keys'::text[])
UNION ALL
SELECT id, NULL, idempotency_key, request_fingerprint, pg_catalog.pg_logical_emit_message(true, 'rowcall', '')
FROM rowcall.job_runs
WHERE key_owner OPERATOR(pg_catalog.=) :'key_owner' AND idempotency_key OPERATOR(pg_catalog.=) ANY(:'keys'::text[]);
ROLLBACK;

-- rowcall.queue.lease: UNLOCKED
-- Those whose rows no other transaction has locked, so that a locked row delays only itself.
\set run_ids '{"1"}'
\set lease_keys '{"1/1": 120}'
\set worker 'worker-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
SELECT run.id FROM rowcall.job_runs AS run WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
        AND run.status IN ('running') FOR NO KEY UPDATE SKIP LOCKED;
ROLLBACK;

-- rowcall.queue.lease: HEARTBEAT
-- One statement for all leases of a process.  greatest(): a late heartbeat must not shorten a lease.
-- Primary key; locked_until is in no index, so this is a heap-only update.  It waits for no row: a locked row is
-- returned as it is, not renewed.  A lease that is not returned at all is lost.
\set run_ids '{"1"}'
\set lease_keys '{"1/1": 120}'
\set worker 'worker-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH unlocked AS (SELECT run.id FROM rowcall.job_runs AS run WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
        AND run.status IN ('running') FOR NO KEY UPDATE SKIP LOCKED), renewed AS (
    UPDATE rowcall.job_runs AS run
    SET locked_until = greatest(
            run.locked_until, now() + (:'lease_keys'::jsonb ->> (run.id || '/' || run.lease_no))::float8 * interval '1 second'),
        updated_at = now()
    WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked))
    RETURNING run.id, run.lease_no, run.cancel_requested_at IS NOT NULL AS cancel_requested
)
SELECT id, lease_no, cancel_requested, true AS renewed FROM renewed
UNION ALL
SELECT run.id, run.lease_no, run.cancel_requested_at IS NOT NULL, false FROM rowcall.job_runs AS run
WHERE (SELECT count(*) FROM renewed) < cardinality(:'run_ids'::bigint[])
    AND run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
        AND run.status IN ('running') AND run.id <> ALL(ARRAY(SELECT id FROM renewed));
ROLLBACK;

-- rowcall.queue.lease: RENEW
-- The end of a handler's own step: its lease is renewed, and cannot end before the step is committed.  If another step
-- of the same handler has locked the row, this one only holds it: to renew it would make the two wait for each other.
\set seconds '120'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
BEGIN;
WITH renewed AS (
    UPDATE rowcall.job_runs AS run
    SET locked_until = greatest(run.locked_until,
            pg_catalog.clock_timestamp() + :'seconds' * interval '1 second'), updated_at = pg_catalog.now()
    WHERE run.id = (
        SELECT id FROM rowcall.job_runs WHERE id = :'run_id' AND lease_no = :'lease_no' AND locked_by = :'worker'
            AND status IN ('running') FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING run.id
)
SELECT id FROM renewed
UNION ALL
SELECT held.id FROM (
    SELECT id FROM rowcall.job_runs WHERE id = :'run_id' AND lease_no = :'lease_no' AND locked_by = :'worker'
            AND status IN ('running') AND NOT EXISTS (SELECT FROM renewed) FOR SHARE
) AS held;
ROLLBACK;

-- rowcall.queue.lease: SAVE
-- What the handler saves for its next attempt, beside its progress.  Fenced like every write of a worker.
\set saved '{"rows": 7}'
\set run_id '1'
\set lease_no '1'
\set worker 'worker-1'
BEGIN;
UPDATE rowcall.job_runs AS run
SET progress = coalesce(run.progress, '{}') || pg_catalog.jsonb_build_object('saved', :'saved'::jsonb),
    updated_at = pg_catalog.now()
WHERE run.id = :'run_id' AND run.lease_no = :'lease_no' AND run.locked_by = :'worker'
    AND run.status IN ('running')
RETURNING run.id;
ROLLBACK;

-- rowcall.queue.lease: SHOW_PROGRESS
-- The progress that handlers report, for people to see: many at once, without waiting for locked rows.
\set run_ids '{"1"}'
\set lease_keys '{"1/1": 120}'
\set worker 'worker-1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH unlocked AS (SELECT run.id FROM rowcall.job_runs AS run WHERE run.id = ANY(:'run_ids'::bigint[]) AND :'lease_keys'::jsonb ? (run.id || '/' || run.lease_no) AND run.locked_by = :'worker'
        AND run.status IN ('running') FOR NO KEY UPDATE SKIP LOCKED)
UPDATE rowcall.job_runs AS run
SET progress = coalesce(run.progress, '{}') || (:'lease_keys'::jsonb -> (run.id || '/' || run.lease_no)), updated_at = now()
WHERE run.id = ANY(ARRAY(SELECT id FROM unlocked))
RETURNING run.id, run.lease_no;
ROLLBACK;

-- rowcall.queue.lease: SAVED
\set run_id '1'
BEGIN;
SELECT progress -> 'saved' FROM rowcall.job_runs WHERE id = :'run_id';
ROLLBACK;

-- rowcall.queue.lease: EXPIRE
-- The sweep of one run by its id, which an operator or a test asks for.  lease_no as seen.  The row is locked first: a
-- PostgreSQL that has waited for a row at a place may change it without looking at it again.
\set run_id '1'
\set lease_no '1'
BEGIN;
WITH seen AS (
    SELECT ctid AS place, id, status, locked_by AS worker FROM rowcall.job_runs
    WHERE id = :'run_id' AND lease_no = :'lease_no' AND status IN ('running') AND locked_until < now()
    FOR UPDATE
), expired AS (
    UPDATE rowcall.job_runs AS run SET 
    status = CASE WHEN run.cancel_requested_at IS NOT NULL THEN 'cancelled'
                  WHEN run.attempts >= run.max_attempts THEN 'dead'
                  ELSE 'failed' END,
    finished_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN now() END,
    run_at = CASE WHEN run.cancel_requested_at IS NOT NULL OR run.attempts >= run.max_attempts THEN run.run_at
                  ELSE now() END,
    last_error = 'the lease of ' || run.locked_by || ' ran out: the worker died, froze, or lost the database',
    error_type = 'LeaseExpired', failed_at = now(), last_stack = NULL,
    suspect = run.suspect + 1, locked_by = NULL, locked_until = NULL, updated_at = now()
    WHERE run.ctid = ANY(ARRAY(SELECT place FROM seen WHERE status IN ('running')))
    RETURNING run.*
), ended AS (
    SELECT 
    expired.id AS run_id, expired.lease_no, expired.attempts AS attempt, 'expire' AS outcome, seen.worker,
    expired.started_at, expired.error_type, expired.last_error AS error, NULL AS stack, false AS permanent,
    NULL::jsonb AS forensics FROM expired JOIN seen ON seen.id = expired.id
), history AS (
    INSERT INTO rowcall.job_attempts
        (run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics)
    SELECT run_id, lease_no, attempt, outcome, worker, started_at, error_type, error, stack, permanent, forensics
    FROM ended)
SELECT id FROM expired;
ROLLBACK;

-- rowcall.queue.operate: RUN_NOW
\set run_id '1'
BEGIN;
UPDATE rowcall.job_runs SET status = 'queued', run_at = now(), updated_at = now()
WHERE id = :'run_id' AND status IN ('queued', 'failed')
RETURNING *;
ROLLBACK;

-- rowcall.queue.operate: RETRY
-- lease_no stays: it keeps a worker that held this run before the retry from finishing it.
-- A pruned run has no payload to run again.
\set run_id '1'
BEGIN;
UPDATE rowcall.job_runs SET 
    status = 'queued', attempts = 0, run_at = now(), finished_at = NULL, cancel_requested_at = NULL,
    last_error = NULL, error_type = NULL, failed_at = NULL, last_stack = NULL, progress = NULL, updated_at = now() WHERE id = :'run_id' AND status IN ('dead', 'cancelled') AND pruned_at IS NULL RETURNING *;
ROLLBACK;

-- rowcall.queue.queues: LIST_QUEUES
-- Each lane by one range of job_runs_live, no further than it is counted.  The running runs of a queue with a limit are
-- its holders; for a queue without one they are not counted, as that would read all live runs.
\set declared '{"mail": 2}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE 
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL  ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL  AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
), waiting AS (
    SELECT lanes.queue, sum(counted.due) AS due, min(counted.oldest) AS oldest FROM lanes CROSS JOIN LATERAL (
        SELECT count(*) AS due, min(run_at) AS oldest FROM (
            SELECT run_at FROM rowcall.job_runs
            WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority AND run_at <= now()
                AND status IN ('queued', 'failed')
            ORDER BY run_at, id LIMIT 1000
        ) AS first
    ) AS counted GROUP BY lanes.queue
)
SELECT coalesce(waiting.queue, queues.name) AS name, queues.paused_at,
    least(queues.max_running, (:'declared'::jsonb ->> coalesce(waiting.queue, queues.name))::integer) AS max_running,
    CASE WHEN queues.holders <> '{}' THEN (
        SELECT count(*) FROM rowcall.job_runs WHERE id = ANY(queues.holders) AND status = 'running'
    ) END AS running_under_limit,
    least(coalesce(waiting.due, 0), 1000)::integer AS due, waiting.oldest AS due_since
FROM waiting FULL JOIN rowcall.queues ON queues.name = waiting.queue
ORDER BY 1;
ROLLBACK;

-- rowcall.queue.queues: GET_QUEUE
\set name 'nightly'
BEGIN;
SELECT name, paused_at, max_running FROM rowcall.queues WHERE name = :'name' FOR UPDATE;
ROLLBACK;

-- rowcall.queue.queues: MAKE_QUEUES
-- The row that a claim under a limit locks; a queue that was never paused nor limited by an operator has none.
\set names '{"mail"}'
BEGIN;
INSERT INTO rowcall.queues (name) SELECT unnest(:'names'::text[]) ON CONFLICT (name) DO NOTHING;
ROLLBACK;

-- rowcall.queue.queues: HAS_QUEUE
-- The primary key of queues.
\set name 'nightly'
BEGIN;
SELECT EXISTS (SELECT FROM rowcall.queues WHERE name = :'name');
ROLLBACK;

-- rowcall.queue.queues: PAUSE
\set name 'nightly'
BEGIN;
UPDATE rowcall.queues SET paused_at = coalesce(paused_at, now()), updated_at = now() WHERE name = :'name';
ROLLBACK;

-- rowcall.queue.queues: RESUME
\set name 'nightly'
BEGIN;
UPDATE rowcall.queues SET paused_at = NULL, updated_at = now() WHERE name = :'name';
ROLLBACK;

-- rowcall.queue.queues: LIMIT
-- Running runs count too if they were claimed under a limit; those claimed without one finish uncounted.
\set max_running '2'
\set name 'nightly'
BEGIN;
UPDATE rowcall.queues SET max_running = :'max_running', updated_at = now() WHERE name = :'name';
ROLLBACK;

-- rowcall.queue.retention.prune: PAGE
-- One range of job_runs_created, no longer than a page however few of its rows are due.  No run finishes before it is
-- created, so nothing newer than the shortest retention is due.  Only finished runs have a finished_at.
\set after_created_at '-infinity'
\set after_id '0'
\set shortest '30'
\set batch '100'
\set types '{"noop": {"succeeded": 7}}'
\set days '{"succeeded": 30, "dead": 90, "cancelled": 30}'
\set bare 'false'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_bitmapscan = off;
WITH page AS MATERIALIZED (
    SELECT run.id, run.created_at, run.job_type, run.status, run.finished_at, run.id || '/' || extract(epoch FROM run.updated_at) AS version,
        run.pruned_at IS NOT NULL AS bare,
        run.pruned_at IS NULL AND coalesce(run.held_key, run.idempotency_key) IS NOT NULL AS stays
    FROM rowcall.job_runs AS run
    WHERE (run.created_at, run.id) > (:'after_created_at'::timestamptz, :'after_id'::bigint)
        AND run.created_at < now() - :'shortest' * interval '24 hours'
    ORDER BY run.created_at, run.id LIMIT :'batch'
), last AS (
    SELECT created_at, id FROM page ORDER BY created_at DESC, id DESC LIMIT 1
), due AS (
    SELECT id, version, stays FROM page
    WHERE finished_at < now() - coalesce(:'types'::jsonb -> page.job_type ->> page.status, :'days'::jsonb ->> page.status)::float8 * interval '24 hours' AND bare = :'bare'
)
SELECT last.created_at, last.id, (SELECT count(*) FROM page) AS looked_at,
    extract(epoch FROM now() - :'shortest' * interval '24 hours' - last.created_at)::float8 AS seconds_left,
    (SELECT count(*) FROM due WHERE stays) AS stay,
    (SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM due) AS due,
    (SELECT coalesce(array_agg(version ORDER BY id), '{}') FROM due) AS versions
FROM last;
ROLLBACK;

-- rowcall.queue.retention.prune: PRUNE
-- Locked rows are skipped; the next walk reads them again.  A bare row and a run that has no key, or holds it no longer,
-- are deleted, with their attempts.  Another run loses its payload and its details; its status stays, and so do its keys
-- with the fingerprints that distinguish a replay from other content.
\set due '{"1"}'
\set versions '{"1/1767614400.000000"}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH pruned AS MATERIALIZED (
    SELECT id, coalesce(held_key, idempotency_key) IS NULL OR pruned_at IS NOT NULL AS goes FROM rowcall.job_runs AS run
    WHERE run.id = ANY(:'due'::bigint[]) AND run.id || '/' || extract(epoch FROM run.updated_at) = ANY(:'versions'::text[]) AND run.finished_at IS NOT NULL
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM rowcall.job_runs WHERE id = ANY(ARRAY(SELECT id FROM pruned WHERE goes)) RETURNING id
), made_bare AS (
    UPDATE rowcall.job_runs
    SET payload = '{}', result = NULL, progress = NULL, last_error = NULL, last_stack = NULL, trace_parent = NULL,
        pruned_at = now(), updated_at = now()
    WHERE id = ANY(ARRAY(SELECT id FROM pruned WHERE NOT goes)) RETURNING id
), history AS (
    DELETE FROM rowcall.job_attempts WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))
)
SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT count(*) FROM made_bare) AS made_bare;
ROLLBACK;

-- rowcall.queue.retention.prune: ARCHIVED
-- A run as one JSON object with all its columns and attempts; times in UTC, whatever the session's zone.
\set due '{"1"}'
\set versions '{"1/1767614400.000000"}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL TIME ZONE 'UTC';
SELECT (to_jsonb(run) || jsonb_build_object('attempts_ended', (
    SELECT coalesce(jsonb_agg(to_jsonb(ended) - 'run_id' ORDER BY ended.lease_no), '[]')
    FROM rowcall.job_attempts AS ended WHERE ended.run_id = run.id
)))::text AS line
FROM rowcall.job_runs AS run WHERE run.id = ANY(:'due'::bigint[]) AND run.id || '/' || extract(epoch FROM run.updated_at) = ANY(:'versions'::text[])
ORDER BY run.id;
ROLLBACK;

-- rowcall.queue.retention.prune: DELETE_OCCURRENCES
-- A page is read in an index's order and must not be collected and sorted: with statistics that are old by a million
-- rows, the planner would read everything behind the page too.
-- The oldest of each definition, by the primary key.  Its last one stays, so that a yearly schedule still shows it; the
-- tick needs none, because next_run_at never goes back.
\set keep_days '90'
\set batch '100'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_bitmapscan = off;
WITH deleted AS (
    DELETE FROM rowcall.schedule_occurrences WHERE ctid = ANY(ARRAY(
        SELECT old.place FROM rowcall.job_definitions AS definition CROSS JOIN LATERAL (
            SELECT ctid AS place 
FROM rowcall.schedule_occurrences
WHERE definition_id = definition.id AND nominal_at < least(now() - :'keep_days' * interval '24 hours', (
    SELECT max(nominal_at) FROM rowcall.schedule_occurrences WHERE definition_id = definition.id
)) ORDER BY nominal_at LIMIT :'batch' FOR UPDATE SKIP LOCKED
        ) AS old LIMIT :'batch'
    )) RETURNING 1
)
SELECT count(*) AS deleted FROM deleted;
ROLLBACK;

-- rowcall.queue.retention.prune: COUNT_OCCURRENCES
-- The oldest of each definition, by the primary key.  Its last one stays, so that a yearly schedule still shows it; the
-- tick needs none, because next_run_at never goes back.
\set keep_days '90'
BEGIN;
SELECT sum((SELECT count(*) 
FROM rowcall.schedule_occurrences
WHERE definition_id = definition.id AND nominal_at < least(now() - :'keep_days' * interval '24 hours', (
    SELECT max(nominal_at) FROM rowcall.schedule_occurrences WHERE definition_id = definition.id
))))::bigint FROM rowcall.job_definitions AS definition;
ROLLBACK;

-- rowcall.queue.retention.prune: POLICY
\set job_type 'noop'
BEGIN;
SELECT payload FROM rowcall.job_definitions WHERE name = :'job_type' AND job_type = :'job_type' AND removed_at IS NULL;
ROLLBACK;

-- rowcall.queue.sleepers: FALL_ASLEEP
-- rowcall.wake reads it.  A worker that has died asleep counts until then, one that is alive renews it by heartbeat.
-- Neither statement waits for the row: then the worker polls, or is notified for nothing.
\set seconds '120'
\set worker 'worker-1'
BEGIN;
UPDATE rowcall.workers SET sleeps_until = now() + :'seconds' * interval '1 second'
WHERE id = (SELECT id FROM rowcall.workers WHERE id = :'worker' FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id;
ROLLBACK;

-- rowcall.queue.sleepers: AWAKE
\set worker 'worker-1'
BEGIN;
UPDATE rowcall.workers SET sleeps_until = NULL
WHERE id = (SELECT id FROM rowcall.workers WHERE id = :'worker' FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id;
ROLLBACK;

-- rowcall.queue.sleepers: NEXT_TRANSACTION
-- A transaction with this number or a higher one, or with none yet, sees which workers sleep now.
BEGIN;
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
ROLLBACK;

-- rowcall.queue.sleepers: HAVE_ENDED
-- Those before it may not: all of them have ended.
\set transaction '1000'
BEGIN;
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= :'transaction'::bigint;
ROLLBACK;

-- rowcall.queue.views.explain: RUN_AND_QUEUE
-- The run by its id, its queue's settings, and the runs that hold that queue's limit.
\set declared '{"mail": 2}'
\set run_id '1'
BEGIN;
SELECT run.*, now() AS at, run.run_at <= now() AS due, run.attempts < run.max_attempts AS attempts_left,
    run.locked_until < now() AS lease_is_over, queues.paused_at AS queue_paused_at,
    least(queues.max_running, (:'declared'::jsonb ->> run.queue)::integer) AS max_running,
    (:'declared'::jsonb ->> run.queue)::integer AS declared_most,
    ARRAY(
        SELECT holder.id FROM rowcall.job_runs AS holder
        WHERE holder.id = ANY(queues.holders) AND holder.status = 'running' ORDER BY holder.id
    ) AS holders
FROM rowcall.job_runs AS run LEFT JOIN rowcall.queues ON queues.name = run.queue
WHERE run.id = :'run_id';
ROLLBACK;

-- rowcall.queue.views.explain: BEFORE_IT
-- The due runs of this queue that the claim takes first, in the order of job_runs_live.
\set queue 'default'
\set priority '0'
\set run_at '2026-01-05T12:00:00+00:00'
\set id '1'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
SELECT count(*) FROM (
    SELECT FROM rowcall.job_runs
    WHERE finished_at IS NULL AND queue = :'queue'
        AND (priority, run_at, id) < (:'priority', :'run_at'::timestamptz, :'id')
        AND run_at <= now() AND status IN ('queued', 'failed') AND suspect = 0
    ORDER BY priority, run_at, id LIMIT 1000
) AS first;
ROLLBACK;

-- rowcall.queue.views.explain: SERVING
-- Workers that take its type from its queue, and those that did a moment ago: cron may start the next one.
\set silence '150'
\set job_type 'noop'
\set queue 'default'
BEGIN;
SELECT id, stopped_at FROM rowcall.workers
WHERE heartbeat_at > now() - :'silence' * interval '1 second' AND :'job_type' = ANY(job_types)
    AND (queues IS NULL OR :'queue' = ANY(queues))
ORDER BY id;
ROLLBACK;

-- rowcall.queue.views.explain: RUNNING_ALONE
-- Of these workers, those that run a suspect alone, and with which run; job_runs_suspect.
\set workers '{"worker-1"}'
BEGIN;
SELECT locked_by, id FROM rowcall.job_runs
WHERE finished_at IS NULL AND suspect > 0 AND suspect >= 2 AND status = 'running'
    AND locked_by = ANY(:'workers'::text[])
ORDER BY id;
ROLLBACK;

-- rowcall.queue.views.explain: SWEEPING
-- Live workers that sweep its queue, whatever job types they take.
\set silence '150'
\set queue 'default'
BEGIN;
SELECT EXISTS (
    SELECT FROM rowcall.workers
    WHERE heartbeat_at > now() - :'silence' * interval '1 second' AND stopped_at IS NULL
        AND (queues IS NULL OR :'queue' = ANY(queues))
);
ROLLBACK;

-- rowcall.queue.views.explain: IS_UNLOCKED
-- As the claim would lock it; a row that another transaction has locked is skipped.
\set id '1'
BEGIN;
SELECT EXISTS (SELECT FROM rowcall.job_runs WHERE id = :'id' FOR SHARE SKIP LOCKED);
ROLLBACK;

-- rowcall.queue.views.inspect: GET_RUN
\set run_id '1'
BEGIN;
SELECT run.*, (SELECT name FROM rowcall.job_definitions WHERE id = run.definition_id) AS definition
FROM rowcall.job_runs AS run WHERE run.id = :'run_id';
ROLLBACK;

-- rowcall.queue.views.inspect: LOCK_RUN
-- For a change: waits for the transaction that is changing the run now, and returns the result.
\set run_id '1'
BEGIN;
SELECT run.*, (SELECT name FROM rowcall.job_definitions WHERE id = run.definition_id) AS definition
FROM rowcall.job_runs AS run WHERE run.id = :'run_id'
 FOR UPDATE OF run;
ROLLBACK;

-- rowcall.queue.views.inspect: ATTEMPTS
-- job_attempts' primary key, in its order.
\set run_id '1'
BEGIN;
SELECT * FROM rowcall.job_attempts WHERE run_id = :'run_id' ORDER BY lease_no;
ROLLBACK;

-- rowcall.queue.views.inspect: ATTEMPTS_PAGE
-- The same, a page at a time.
\set run_id '1'
\set after_lease_no '0'
\set limit '50'
\set page_bytes '1048576'
BEGIN;
WITH shown AS (
    SELECT * FROM rowcall.job_attempts WHERE run_id = :'run_id' AND lease_no > :'after_lease_no'
    ORDER BY lease_no LIMIT :'limit' + 1
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY lease_no) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY lease_no ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT * FROM measured WHERE place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1) ORDER BY lease_no;
ROLLBACK;

-- rowcall.queue.views.lists: PAGES[created]
-- Scan -> the page of a list.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set include '{"payload"}'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND true
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, definition_id, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition,
        job_type, status, progress, queue, priority, attempts, max_attempts, lease_no, natural_key, idempotency_key,
        key_owner, run_at, scheduled_for, locked_by, locked_until, cancel_requested_at, last_error, error_type,
        failed_at, created_by, created_at, started_at, finished_at, updated_at, pruned_at,
        CASE WHEN 'payload' = ANY(:'include'::text[]) THEN payload END AS payload,
        CASE WHEN 'result' = ANY(:'include'::text[]) THEN result END AS result FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.views.lists: PAGES[failed]
-- Scan -> the page of a list.
\set milliseconds '5000'
\set waited '4000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set include '{"payload"}'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND true
    ORDER BY created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, definition_id, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition,
        job_type, status, progress, queue, priority, attempts, max_attempts, lease_no, natural_key, idempotency_key,
        key_owner, run_at, scheduled_for, locked_by, locked_until, cancel_requested_at, last_error, error_type,
        failed_at, created_by, created_at, started_at, finished_at, updated_at, pruned_at,
        CASE WHEN 'payload' = ANY(:'include'::text[]) THEN payload END AS payload,
        CASE WHEN 'result' = ANY(:'include'::text[]) THEN result END AS result FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.views.lists: PAGES[definition]
-- Scan -> the page of a list.
\set milliseconds '5000'
\set waited '4000'
\set definition 'nightly'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set include '{"payload"}'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND true
    ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY definition_id DESC, created_at DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, definition_id, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition,
        job_type, status, progress, queue, priority, attempts, max_attempts, lease_no, natural_key, idempotency_key,
        key_owner, run_at, scheduled_for, locked_by, locked_until, cancel_requested_at, last_error, error_type,
        failed_at, created_by, created_at, started_at, finished_at, updated_at, pruned_at,
        CASE WHEN 'payload' = ANY(:'include'::text[]) THEN payload END AS payload,
        CASE WHEN 'result' = ANY(:'include'::text[]) THEN result END AS result FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.views.lists: PAGES[key]
-- Scan -> the page of a list.
\set milliseconds '5000'
\set waited '4000'
\set key 'welcome:1'
\set at 'infinity'
\set id '1'
\set from '-infinity'
\set most '20000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set limit '50'
\set include '{"payload"}'
\set page_bytes '1048576'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
WITH page AS MATERIALIZED (
    SELECT scanned.* FROM (
        SELECT * FROM rowcall.job_runs WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'most'
    ) AS scanned
    WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb) AND true
    ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'limit' + 1
), bound AS (
    SELECT created_at, id FROM rowcall.job_runs
    WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz AND (SELECT count(*) FROM page) <= :'limit'
    ORDER BY created_at + interval '0' DESC, id DESC OFFSET :'most' - 1 LIMIT 1
), shown AS (
    SELECT id, definition_id, (SELECT name FROM rowcall.job_definitions WHERE id = page.definition_id) AS definition,
        job_type, status, progress, queue, priority, attempts, max_attempts, lease_no, natural_key, idempotency_key,
        key_owner, run_at, scheduled_for, locked_by, locked_until, cancel_requested_at, last_error, error_type,
        failed_at, created_by, created_at, started_at, finished_at, updated_at, pruned_at,
        CASE WHEN 'payload' = ANY(:'include'::text[]) THEN payload END AS payload,
        CASE WHEN 'result' = ANY(:'include'::text[]) THEN result END AS result FROM page
), measured AS (
    SELECT shown.*, count(*) OVER () AS found, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place,
        sum(octet_length(row_to_json(shown)::text)) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM shown
)
SELECT measured.*, bound.created_at AS bound_at, bound.id AS bound_id
FROM (VALUES (1)) AS always LEFT JOIN bound ON true LEFT JOIN measured ON place <= :'limit' AND (bytes <= :'page_bytes' OR place = 1)
ORDER BY measured.created_at DESC, measured.id DESC;
ROLLBACK;

-- rowcall.queue.views.lists: COUNTS[created]
-- Scan -> how many match.
\set milliseconds '5000'
\set waited '4000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set most '20000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
SELECT count(*) FILTER (WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)) AS value, count(*) >= :'most' AS capped FROM (
    SELECT * FROM rowcall.job_runs WHERE (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
) AS scanned;
ROLLBACK;

-- rowcall.queue.views.lists: COUNTS[failed]
-- Scan -> how many match.
\set milliseconds '5000'
\set waited '4000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set most '20000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
SELECT count(*) FILTER (WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)) AS value, count(*) >= :'most' AS capped FROM (
    SELECT * FROM rowcall.job_runs WHERE failed_at IS NOT NULL AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at DESC, id DESC LIMIT :'most'
) AS scanned;
ROLLBACK;

-- rowcall.queue.views.lists: COUNTS[definition]
-- Scan -> how many match.
\set milliseconds '5000'
\set waited '4000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set most '20000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
SELECT count(*) FILTER (WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)) AS value, count(*) >= :'most' AS capped FROM (
    SELECT * FROM rowcall.job_runs WHERE definition_id IS NOT NULL
        AND (definition_id, created_at, id) < ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'at'::timestamptz, :'id')
        AND (definition_id, created_at, id) >= ((SELECT id FROM rowcall.job_definitions WHERE name = :'definition'), :'from'::timestamptz, 0) ORDER BY definition_id DESC, created_at DESC, id DESC LIMIT :'most'
) AS scanned;
ROLLBACK;

-- rowcall.queue.views.lists: COUNTS[key]
-- Scan -> how many match.
\set milliseconds '5000'
\set waited '4000'
\set status '{"queued"}'
\set job_type 'noop'
\set queue 'default'
\set definition 'nightly'
\set key 'welcome:1'
\set error_type 'GatewayError'
\set created_by 'cli:me'
\set created_after '2026-01-05T12:00:00+00:00'
\set created_before '2027-01-05T12:00:00+00:00'
\set run_after '2026-01-05T12:00:00+00:00'
\set run_before '2027-01-05T12:00:00+00:00'
\set finished_after '2026-01-05T12:00:00+00:00'
\set finished_before '2027-01-05T12:00:00+00:00'
\set payload '{"user_id": 1}'
\set most '20000'
\set at 'infinity'
\set id '1'
\set from '-infinity'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL enable_sort = off; SET LOCAL enable_incremental_sort = off;
SET LOCAL statement_timeout = :'milliseconds'; SET LOCAL lock_timeout = :'waited';
SELECT count(*) FILTER (WHERE (:'status'::text[] IS NULL OR status = ANY(:'status'::text[]))
    AND (:'job_type'::text IS NULL OR job_type = :'job_type')
    AND (:'queue'::text IS NULL OR queue = :'queue')
    AND (:'definition'::text IS NULL OR definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = :'definition'))
    AND (:'key'::text IS NULL OR :'key' IN (idempotency_key, held_key))
    AND (:'error_type'::text IS NULL OR error_type = :'error_type')
    AND (:'created_by'::text IS NULL OR :'created_by' IN (created_by, split_part(created_by, ' (', 1)))
    AND (:'created_after'::timestamptz IS NULL OR created_at >= :'created_after')
    AND (:'created_before'::timestamptz IS NULL OR created_at < :'created_before')
    AND (:'run_after'::timestamptz IS NULL OR run_at >= :'run_after')
    AND (:'run_before'::timestamptz IS NULL OR run_at < :'run_before')
    AND (:'finished_after'::timestamptz IS NULL OR finished_at >= :'finished_after')
    AND (:'finished_before'::timestamptz IS NULL OR finished_at < :'finished_before')
    AND (:'payload'::jsonb IS NULL OR payload @> :'payload'::jsonb)) AS value, count(*) >= :'most' AS capped FROM (
    SELECT * FROM rowcall.job_runs WHERE id = ANY(ARRAY(
            SELECT id FROM rowcall.job_runs WHERE idempotency_key = :'key'
            UNION ALL
            SELECT id FROM rowcall.job_runs WHERE held_key = :'key'
        )) AND (created_at, id) < (:'at'::timestamptz, :'id') AND created_at >= :'from'::timestamptz ORDER BY created_at + interval '0' DESC, id DESC LIMIT :'most'
) AS scanned;
ROLLBACK;

-- rowcall.queue.views.searches: TAKE_SLOT
-- The first free one of a key's slots, held until the transaction ends; so the limit holds for all servers together.
\set key_id '1'
BEGIN;
SELECT slot FROM generate_series(1, 2) AS slot
WHERE pg_try_advisory_xact_lock(hashtextextended('rowcall.search/' || :'key_id' || '/' || slot, 0)) LIMIT 1;
ROLLBACK;

-- rowcall.queue.views.stats: QUEUES
-- Three scans of each lane's range of job_runs_live: what could be claimed now, what runs, and what is for later.
-- A queue without live runs has a row too if it has settings or a job type: such a queue was made, and not only named.
\set known '{"mail"}'
\set declared '{"mail": 2}'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE 
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL  ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL  AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
), found AS (
    SELECT lanes.queue, run.status, run.due_since FROM lanes CROSS JOIN LATERAL (
        (SELECT status, run_at AS due_since FROM rowcall.job_runs WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority AND run_at <= now() AND status IN ('queued', 'failed')
         ORDER BY run_at, id LIMIT 1000)
        UNION ALL
        (SELECT status, NULL FROM (
            SELECT status FROM rowcall.job_runs WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority AND run_at <= now() ORDER BY run_at, id LIMIT 2000
         ) AS head WHERE status = 'running')
        UNION ALL
        (SELECT status, NULL FROM rowcall.job_runs WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority AND run_at > now() ORDER BY run_at, id LIMIT 1000)
    ) AS run
), live AS (
    SELECT queue, count(due_since) AS due, min(due_since) AS due_since,
        count(*) FILTER (WHERE status = 'queued') AS queued,
        count(*) FILTER (WHERE status = 'running') AS running,
        count(*) FILTER (WHERE status = 'failed') AS failed
    FROM found GROUP BY queue
), named AS (
    SELECT queue AS name FROM live UNION SELECT name FROM rowcall.queues UNION SELECT unnest(:'known'::text[])
)
SELECT named.name, queues.name IS NOT NULL OR named.name = ANY(:'known'::text[]) AS made, queues.paused_at,
    least(queues.max_running, (:'declared'::jsonb ->> named.name)::integer) AS max_running,
    least(coalesce(live.due, 0), 1000)::integer AS due,
    coalesce(extract(epoch FROM now() - live.due_since), 0)::float8 AS oldest_due_age_seconds,
    least(coalesce(live.queued, 0), 1000)::integer AS queued,
    least(coalesce(live.running, 0), 1000)::integer AS running,
    least(coalesce(live.failed, 0), 1000)::integer AS failed
FROM named LEFT JOIN live ON live.queue = named.name LEFT JOIN rowcall.queues ON queues.name = named.name
ORDER BY named.name;
ROLLBACK;

-- rowcall.queue.views.stats: AROUND
-- The indexes job_attempts_failed, job_definitions_paused and job_definitions_due; of workers there are those of a day.
\set silence '150'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
SELECT now() AS at,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_attempts
        WHERE ended_at > now() - interval '1 hour' AND outcome IN ('fail', 'give up', 'expire') LIMIT 1000
    ) AS lately) AS attempts_failed_last_hour,
    (SELECT count(*) FROM rowcall.workers
     WHERE stopped_at IS NULL AND heartbeat_at > now() - :'silence' * interval '1 second') AS workers_alive,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_definitions WHERE paused_at IS NOT NULL LIMIT 1000
    ) AS paused) AS definitions_paused,
    (SELECT count(*) FROM (
        SELECT FROM rowcall.job_definitions WHERE next_run_at < now() - interval '150.0 seconds'
        LIMIT 1000
    ) AS overdue) AS definitions_overdue;
ROLLBACK;

-- rowcall.queue.workers: REGISTER
\set id '1'
\set hostname 'worker.example'
\set pid '4711'
\set version '0.2.0'
\set queues '{"default"}'
\set job_types '{"noop"}'
\set concurrency '4'
BEGIN;
INSERT INTO rowcall.workers (id, hostname, pid, version, queues, job_types, concurrency)
VALUES (:'id', :'hostname', :'pid', :'version', :'queues'::text[], :'job_types'::text[], :'concurrency');
ROLLBACK;

-- rowcall.queue.workers: ALIVE
-- Primary key; a heap-only update while it is awake, as no index knows heartbeat_at.  It does not wait for the row,
-- because the leases would wait behind it.  The answer is the row as it was: whether others still saw it asleep.
\set sleep '60'
\set worker 'worker-1'
BEGIN;
WITH beat AS (
    UPDATE rowcall.workers
    SET heartbeat_at = now(),
        sleeps_until = CASE WHEN sleeps_until IS NOT NULL THEN now() + :'sleep' * interval '1 second' END
    WHERE id = (SELECT id FROM rowcall.workers WHERE id = :'worker' FOR NO KEY UPDATE SKIP LOCKED)
)
SELECT coalesce(sleeps_until < now(), false) AS overslept FROM rowcall.workers WHERE id = :'worker';
ROLLBACK;

-- rowcall.queue.workers: STOPPED
\set worker 'worker-1'
BEGIN;
UPDATE rowcall.workers SET stopped_at = now(), heartbeat_at = now(), sleeps_until = NULL WHERE id = :'worker';
ROLLBACK;

-- rowcall.queue.workers: FORGET
-- A row for each start would grow for ever under a cron that starts `once` each minute; a day is enough to look back.
BEGIN;
DELETE FROM rowcall.workers WHERE heartbeat_at < now() - interval '1 day';
ROLLBACK;

-- rowcall.queue.workers: UNSERVED
-- Of each lane, the first thousand that are long due: runs that no worker takes gather at the head.  A paused queue
-- waits on purpose.  A run is served if a live worker names its type and queue; `once` from cron is live each time.
\set silence '150'
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL jit = off;
WITH RECURSIVE 
lanes AS (
    (SELECT queue, priority, run_at FROM rowcall.job_runs
     WHERE finished_at IS NULL  ORDER BY queue, priority, run_at LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT queue, priority, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL  AND (queue, priority) > (lanes.queue, lanes.priority)
        ORDER BY queue, priority, run_at LIMIT 1
    ) AS next
), waiting AS (
    SELECT lanes.queue, first.job_type, first.run_at FROM lanes CROSS JOIN LATERAL (
        SELECT job_type, run_at FROM rowcall.job_runs
        WHERE finished_at IS NULL AND queue = lanes.queue AND priority = lanes.priority
            AND run_at <= now() - :'silence' * interval '1 second' AND status IN ('queued', 'failed')
        ORDER BY run_at, id LIMIT 1000
    ) AS first
    WHERE NOT EXISTS (SELECT FROM rowcall.queues WHERE queues.name = lanes.queue AND queues.paused_at IS NOT NULL)
)
SELECT queue, job_type, count(*) AS waiting, min(run_at) AS due_since FROM waiting
WHERE NOT EXISTS (
    SELECT FROM rowcall.workers
    WHERE heartbeat_at > now() - :'silence' * interval '1 second' AND waiting.job_type = ANY(workers.job_types)
        AND (workers.queues IS NULL OR waiting.queue = ANY(workers.queues))
)
GROUP BY queue, job_type ORDER BY due_since, queue, job_type;
ROLLBACK;
