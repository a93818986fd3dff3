"""The databases of a test session: a template, and a copy of it for each test.

A session is one start of pytest; with pytest-xdist, it has several processes.  Each process keeps a connection open
whose application_name is the session's name, which shows other sessions that its databases are in use.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from psycopg2.errors import InsufficientPrivilege
from psycopg2.extensions import make_dsn

from rowcall.base import database
from rowcall.base.errors import RowcallError
from rowcall.base.prepared import is_our_session

PREFIX = "rowcall_test_"
SESSION_CHARACTERS = 8
NAME_CHARACTERS = len(PREFIX) + SESSION_CHARACTERS

# Held while the template is created and while a process closes; the number is arbitrary.
ADVISORY_LOCK = 769225784
LOCK = f"SELECT pg_advisory_lock({ADVISORY_LOCK})"
UNLOCK = f"SELECT pg_advisory_unlock({ADVISORY_LOCK})"

# Databases of this role that an ended session left behind: no connection has its application_name.
LEFT = f"""
SELECT datname FROM pg_database
WHERE datname ~ '^{PREFIX}[0-9a-f]{{{SESSION_CHARACTERS}}}_' AND pg_get_userbyid(datdba) = current_user
    AND NOT EXISTS (
        SELECT FROM pg_stat_activity WHERE application_name = left(pg_database.datname, {NAME_CHARACTERS})
    )
"""

# Without this limit, a handler would wait forever for a row that its test has changed but not committed.
LOCK_SECONDS = 10

EXISTS = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = %(name)s)"

# A database with connections cannot be renamed or copied, and an app's engine may have left some open.
DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %(name)s"


class Databases:
    """The test databases of this process, on the server at this URL."""

    def __init__(self, url: str, session: str) -> None:
        """`session` is the same text in all processes of one session."""
        self._url = url
        self._session = PREFIX + hashlib.sha256(session.encode()).hexdigest()[:SESSION_CHARACTERS]
        self._template = f"{self._session}_template"
        self._copies: set[str] = set()
        self._connection = database.connect(url, application_name=self._session)
        self._connection.autocommit = True
        self._refuse_shared_sessions()
        with self._locked():
            self._drop_left()

    def _refuse_shared_sessions(self) -> None:
        """Refuse a pooler in transaction mode: it keeps neither our lock nor our application_name."""
        if is_our_session(self._connection):
            return
        with closing(database.connect(self._url)) as other:
            pids = [database.fetch_value(one, "SELECT pg_backend_pid()") for one in (self._connection, other)]
        if pids[0] == pids[1]:
            self._connection.close()
            raise RowcallError(
                "tests cannot use DATABASE_URL: it points to a pooler in transaction mode; use the URL of the server"
                " itself, or of a pooler in session mode"
            )

    def make_template(self, fill: Callable[[str], None]) -> None:
        """Create the template unless another process of the session has; `fill` gets the URL of an empty database."""
        with self._locked():
            if database.fetch_value(self._connection, EXISTS, {"name": self._template}):
                return
            draft = f"{self._session}_draft"
            self._drop(draft)
            self._create(draft)
            fill(self._sibling(draft))
            database.fetch_all(self._connection, DISCONNECT, {"name": draft})
            self._run(f"ALTER DATABASE {draft} RENAME TO {self._template}")

    def copy(self) -> str:
        """Create a copy of the template, and return its URL."""
        name = f"{self._session}_{secrets.token_hex(6)}"
        self._copies.add(name)
        self._create(name, self._template)
        return self._sibling(name)

    def drop_copies(self) -> None:
        """Drop this process's copies, even if sessions are connected to them."""
        while self._copies:
            self._drop(self._copies.pop())

    def close(self) -> None:
        """Drop the copies; the session's last process also drops the template."""
        self.drop_copies()
        self._run("SET application_name = 'rowcall'")
        with self._locked():
            self._drop_left()
        self._connection.close()

    def _drop_left(self) -> None:
        for row in database.fetch_all(self._connection, LEFT):
            self._drop(row["datname"])

    def _create(self, name: str, template: str = "template1") -> None:
        self._run(f"CREATE DATABASE {name} TEMPLATE {template}")
        self._run(f"ALTER DATABASE {name} SET lock_timeout = '{LOCK_SECONDS}s'")
        # PostgreSQL first looks in the schema with the user's name, so it would create an app's tables in Rowcall's.
        if self._connection.info.user == "rowcall":
            self._run(f"ALTER DATABASE {name} SET search_path = public")

    def _drop(self, name: str) -> None:
        self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _run(self, sql: str) -> None:
        try:
            database.fetch_all(self._connection, sql)
        except InsufficientPrivilege as error:
            raise RowcallError(
                f"tests need a role that may create databases: {' '.join(str(error).split())};"
                " give the role of DATABASE_URL this right with ALTER ROLE ... CREATEDB, or unset DATABASE_URL to use a"
                " local server"
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._run(LOCK)
        try:
            yield
        finally:
            if not self._connection.closed:
                self._run(UNLOCK)

    def _sibling(self, name: str) -> str:
        return sibling(self._url, name)


def sibling(url: str, name: str) -> str:
    """Return the URL or connection string of another database on the same server."""
    if "://" not in url:
        return make_dsn(url, dbname=name)
    before, mark, query = url.partition("?")
    scheme, _, rest = before.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{name}{mark}{query}"
