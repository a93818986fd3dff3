"""Whether the roles of `rowcall migrate --grants` have the rights that this version needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pkgutil import resolve_name

from rowcall.base.database import PgConnection, fetch_all
from rowcall.cli.doctor.finding import Finding

# The roles to which rights on Rowcall's tables were granted, and a right that tells the duty of each.
GRANTED = """
SELECT DISTINCT role.rolname AS name, has_any_column_privilege(role.oid, 'rowcall.job_runs', 'INSERT') AS enqueue,
    has_table_privilege(role.oid, 'rowcall.workers', 'INSERT') AS worker,
    has_table_privilege(role.oid, 'rowcall.api_keys', 'INSERT') AS api
FROM pg_class CROSS JOIN aclexplode(relacl) AS granted JOIN pg_roles AS role ON role.oid = granted.grantee
WHERE relnamespace = to_regnamespace('rowcall') AND role.oid <> relowner
ORDER BY 1
"""

# An empty column means the whole table.
LACKING = """
SELECT wanted.relation, string_agg(DISTINCT wanted.privilege, ', ' ORDER BY wanted.privilege) AS privileges
FROM unnest(%(relations)s::text[], %(privileges)s::text[], %(columns)s::text[])
    AS wanted(relation, privilege, attribute)
WHERE NOT CASE WHEN attribute = '' THEN has_table_privilege(%(role)s::name, 'rowcall.' || relation, privilege)
    ELSE has_column_privilege(%(role)s::name, 'rowcall.' || relation, attribute, privilege) END
GROUP BY wanted.relation ORDER BY wanted.relation
"""


def grants(connection: PgConnection) -> Finding:
    """Find roles whose grants are older than the schema."""
    lacking = [
        f"{role['name']} lacks {row['privileges']} on {row['relation']}"
        for role in fetch_all(connection, GRANTED)
        for row in fetch_all(connection, LACKING, {"role": role["name"], **_wanted(role)})
    ]
    if not lacking:
        return Finding("grants", True, "every role with rights on the tables has all the rights that its duty needs")
    return Finding(
        "grants",
        False,
        f"{'; '.join(lacking)}: ask the owner of the tables to run the script that `rowcall migrate --grants` prints,"
        " and to run it again after each migration",
    )


def _wanted(role: Mapping[str, bool]) -> dict[str, list[str]]:
    """Return the rights that the role's duties need, as the parameters of LACKING."""
    duties: dict[str, Mapping[str, Sequence[str]]] = resolve_name("rowcall_migrations.grants:ROLES")
    wanted = {
        (relation, privilege, column)
        for duty, rights in duties.items()
        if role[duty]
        for relation, texts in rights.items()
        for privilege, column in _parsed(texts)
    }
    relations, privileges, columns = zip(*wanted, strict=True) if wanted else ((), (), ())
    return {"relations": [*relations], "privileges": [*privileges], "columns": [*columns]}


def _parsed(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the privilege and the column of rights such as `SELECT` and `SELECT (id, status)`."""
    for text in texts:
        privilege, _, columns = text.partition(" (")
        for column in columns.rstrip(")").split(", "):
            yield privilege, column
