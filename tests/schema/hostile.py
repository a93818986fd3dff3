"""A schema in front of pg_catalog with a trap for every name that Rowcall uses: code that uses a trap fails."""

from __future__ import annotations

from rowcall.base import database
from rowcall.schema.tables import metadata

# Functions in Rowcall's SQL; when a new one is missing here, a test fails.
FUNCTIONS = (
    *("now", "clock_timestamp", "pg_notify", "pg_advisory_xact_lock", "to_jsonb", "jsonb_build_object", "unnest"),
    *("lower", "length", "octet_length", "md5", "array_length", "jsonb_typeof", "concat_ws", "to_regclass"),
    *("current_setting", "extract", "date_trunc", "floor", "round", "pg_backend_pid", "jsonb_array_elements_text"),
)

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "||", "->", "->>", "?", "<@", "@>")

# With exactly the arguments of PostgreSQL's own, so that the first schema in the search_path wins.  Functions that take
# "any" or internal types can be written only in C.
TRAPS = """
DO $traps$
DECLARE known record;
BEGIN
    FOR known IN
        SELECT proname, pg_get_function_identity_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname = ANY(%(functions)s)
            AND NOT ('"any"'::regtype = ANY(proargtypes::oid[])) AND prorettype <> 'internal'::regtype
    LOOP
        EXECUTE format('CREATE FUNCTION hostile.%%I(%%s) RETURNS %%s LANGUAGE plpgsql AS $trap$'
            'BEGIN RAISE EXCEPTION ''stepped on the function %%s''; END $trap$',
            known.proname, known.arguments, known.result, known.proname);
    END LOOP;
    FOR known IN
        SELECT oprname, oprleft::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result, oid
        FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprname = ANY(%(operators)s)
            AND oprleft = ANY(%(types)s::regtype[]) AND oprright = ANY(%(types)s::regtype[])
    LOOP
        EXECUTE format('CREATE FUNCTION hostile.trap_%%s(%%s, %%s) RETURNS %%s LANGUAGE plpgsql AS $trap$'
            'BEGIN RAISE EXCEPTION ''stepped on the operator %%s''; END $trap$',
            known.oid, known.l, known.r, known.result, known.oprname);
        EXECUTE format('CREATE OPERATOR hostile.%%s (FUNCTION = hostile.trap_%%s, LEFTARG = %%s, RIGHTARG = %%s)',
            known.oprname, known.oid, known.l, known.r);
    END LOOP;
END $traps$
"""

TYPES = ("integer", "smallint", "bigint", "text", "name", "timestamptz", "interval", "jsonb", "boolean", "bytea", "oid")


def lay_traps(url: str) -> None:
    """Create the schema, and put it first in the search_path of all new connections to this database."""
    with database.transaction(url) as connection:
        database.fetch_all(connection, "CREATE SCHEMA hostile")
        for table in metadata.tables.values():
            database.fetch_all(connection, f"CREATE TABLE hostile.{table.name} (trap integer)")
        traps = {"functions": list(FUNCTIONS), "operators": list(OPERATORS), "types": list(TYPES)}
        database.fetch_all(connection, TRAPS, traps)
        name = connection.info.dbname
        database.fetch_all(connection, f"ALTER DATABASE {name} SET search_path = hostile, pg_catalog, public")
        role = connection.info.user
        database.fetch_all(
            connection, f"ALTER ROLE {role} IN DATABASE {name} SET search_path = hostile, pg_catalog, public"
        )


def safe(url: str) -> str:
    """Return the same database for the test's own queries, without the traps."""
    return f"{url}?options=-csearch_path%3Dpg_catalog"
