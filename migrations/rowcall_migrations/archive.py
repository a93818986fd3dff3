"""What revision 0002 creates for a long history: a table of archived runs, divided by month."""

from __future__ import annotations

# LIKE copies names, types and NOT NULL, but no defaults, no generated columns, no CHECKs and no indexes: these rows are
# written once, by the statement that prunes.
ARCHIVED_RUNS = """
CREATE TABLE rowcall.archived_runs (
    LIKE rowcall.job_runs,
    attempts_ended jsonb NOT NULL,
    log jsonb NOT NULL,
    further_keys jsonb,
    archived_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT archived_runs_pkey PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE INDEX archived_runs_failed ON rowcall.archived_runs (created_at, id) WHERE failed_at IS NOT NULL;
CREATE INDEX archived_runs_definition ON rowcall.archived_runs (definition_id, created_at, id)
    WHERE definition_id IS NOT NULL;
CREATE INDEX archived_runs_held_key ON rowcall.archived_runs (held_key) WHERE held_key IS NOT NULL;
CREATE INDEX archived_runs_idempotency_key ON rowcall.archived_runs (idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX archived_runs_further_keys ON rowcall.archived_runs USING gin (further_keys)
    WHERE further_keys IS NOT NULL
"""

# Runs with the owner's rights, because only the owner of a table can attach a partition or drop one, and a worker has
# no such right.  The name is made from a date, and nothing else of the caller's reaches the statement.  ATTACH, unlike
# CREATE ... PARTITION OF, takes no lock that readers of other months wait for.  The lock is ATTACH's, taken before the
# look, because another session may be making or dropping the same month.
MAKE_MONTH = """
CREATE FUNCTION rowcall.make_archive_month(of date) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    first timestamptz := date_trunc('month', of::timestamptz);
    name text := 'archived_runs_' || to_char(first, 'YYYY_MM');
BEGIN
    IF of IS NULL OR of NOT BETWEEN '1900-01-01' AND '9999-12-31' THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = 'no month of the archive can contain ' || coalesce(of::text, 'NULL');
    END IF;
    LOCK TABLE rowcall.archived_runs IN SHARE UPDATE EXCLUSIVE MODE;
    IF to_regclass(format('rowcall.%I', name)) IS NULL THEN
        EXECUTE format('CREATE TABLE rowcall.%I (LIKE rowcall.archived_runs INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE rowcall.archived_runs ATTACH PARTITION rowcall.%I FOR VALUES FROM (%L) TO (%L)',
            name, first, first + interval '1 month');
    END IF;
END
$$
"""

# Returns how many runs it dropped, or NULL if there is no such month, or, changing nothing, -1 if there are not as many
# as `expected`.  Waits only briefly for the readers of the archive, because later readers queue behind it.
DROP_MONTH = """
CREATE FUNCTION rowcall.drop_archive_month(of date, expected bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    name text := 'archived_runs_' || to_char(of, 'YYYY_MM');
    runs bigint;
BEGIN
    IF to_regclass(format('rowcall.%I', name)) IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format('LOCK TABLE rowcall.archived_runs, rowcall.%I IN ACCESS EXCLUSIVE MODE', name);
    EXECUTE format('SELECT count(*) FROM rowcall.%I', name) INTO runs;
    IF runs <> expected THEN
        RETURN -1;
    END IF;
    EXECUTE format('DROP TABLE rowcall.%I', name);
    RETURN runs;
END
$$
"""

# PostgreSQL lets everybody execute a new function.
NOT_FOR_ALL = """
REVOKE EXECUTE ON FUNCTION rowcall.make_archive_month(date), rowcall.drop_archive_month(date, bigint) FROM PUBLIC
"""

# A role that reads all runs reads the archive too.  It has only older grants until somebody runs the new script of
# `rowcall migrate --grants`, and lists must not fail until then.  regrole returns a role's name quoted.
RIGHTS_OF_READERS = """
DO $$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END FROM pg_class, aclexplode(relacl)
        WHERE pg_class.oid = 'rowcall.job_runs'::regclass AND privilege_type = 'SELECT'
    LOOP
        EXECUTE 'GRANT SELECT ON rowcall.archived_runs TO ' || role;
    END LOOP;
END
$$
"""

CREATE = (ARCHIVED_RUNS, MAKE_MONTH, DROP_MONTH, NOT_FOR_ALL, RIGHTS_OF_READERS)

DROP = """
DROP FUNCTION rowcall.make_archive_month(date), rowcall.drop_archive_month(date, bigint);
DROP TABLE rowcall.archived_runs
"""
