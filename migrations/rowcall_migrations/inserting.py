"""What revision 0002 creates for inserting runs: the keys of requests, a function, and the rights to both."""

from __future__ import annotations

# Code of 0001 prunes beside this schema too, so the database deletes the keys with their run, with the owner's rights;
# an archived run keeps them, so that lists find it.  The enqueuing role can free only keys that belong to no run.
REQUEST_KEYS = """
CREATE TABLE rowcall.request_keys (
    idempotency_key text NOT NULL,
    key_owner text NOT NULL,
    run_id bigint NOT NULL,
    request_fingerprint text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT request_keys_pkey PRIMARY KEY (idempotency_key, key_owner)
) WITH (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = false);
CREATE INDEX request_keys_run ON rowcall.request_keys (run_id);
CREATE FUNCTION rowcall.delete_request_keys() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    further jsonb;
BEGIN
    WITH deleted AS (
        DELETE FROM rowcall.request_keys WHERE run_id = OLD.id RETURNING idempotency_key
    )
    SELECT jsonb_agg(DISTINCT idempotency_key) INTO further FROM deleted
    WHERE idempotency_key IS DISTINCT FROM OLD.idempotency_key;
    IF further IS NOT NULL THEN
        UPDATE rowcall.archived_runs SET further_keys = further WHERE id = OLD.id AND created_at = OLD.created_at;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER job_runs_keys_deleted AFTER DELETE ON rowcall.job_runs
    FOR EACH ROW EXECUTE FUNCTION rowcall.delete_request_keys();
CREATE FUNCTION rowcall.free_keys(owner text, keys text[]) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM rowcall.request_keys
    WHERE key_owner = owner AND idempotency_key = ANY(keys)
        AND NOT EXISTS (SELECT FROM rowcall.job_runs WHERE id = request_keys.run_id);
END
$$
"""

# Inserts one run without any key, and wakes a sleeping worker if it is due.  A function, because PostgreSQL keeps its
# plans for the session.  Schema-qualified, because it runs with the caller's search_path.
INSERT_RUN = """
CREATE FUNCTION rowcall.insert_run(
    job_type text, payload jsonb, queue text, priority smallint, run_at timestamptz, max_attempts integer,
    unique_mode text, key_owner text, created_by text, trace_parent text
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    inserted bigint;
    is_due boolean;
BEGIN
    INSERT INTO rowcall.job_runs
        (job_type, payload, queue, priority, run_at, max_attempts, unique_mode, key_owner, created_by, trace_parent)
    VALUES ($1, $2, $3, $4, coalesce($5, pg_catalog.now()), $6, $7, $8, $9, $10)
    RETURNING id, run_at OPERATOR(pg_catalog.<=) pg_catalog.now() INTO inserted, is_due;
    IF is_due THEN
        PERFORM rowcall.wake($3, $1);
    END IF;
    RETURN inserted;
END
$$
"""

# A role that can insert runs needs these rights, for a request with an idempotency key, for traces, and for the time.
# It has only older grants until somebody runs the new script of `rowcall migrate --grants`.  regrole returns a role's
# name quoted.
RIGHTS_OF_INSERTERS = """
DO $$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT DISTINCT CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END
        FROM (
            SELECT relacl FROM pg_class WHERE oid = 'rowcall.job_runs'::regclass
            UNION ALL
            SELECT attacl FROM pg_attribute WHERE attrelid = 'rowcall.job_runs'::regclass
        ) AS rights(acl), aclexplode(acl) AS given
        WHERE given.privilege_type = 'INSERT'
    LOOP
        EXECUTE 'GRANT SELECT, INSERT ON rowcall.request_keys TO ' || role;
        EXECUTE 'GRANT INSERT (trace_parent, created_at) ON rowcall.job_runs TO ' || role;
        EXECUTE 'GRANT EXECUTE ON FUNCTION rowcall.free_keys(text, text[]), rowcall.insert_run TO ' || role;
    END LOOP;
END
$$
"""
