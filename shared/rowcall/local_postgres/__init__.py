"""A PostgreSQL of Rowcall's own, below ROWCALL_HOME, for as long as any process uses it."""

from rowcall.local_postgres.programs import OLDEST_MAJOR, Programs, find_programs
from rowcall.local_postgres.server import Server, open_server, remove
from rowcall.local_postgres.url import database_url

__all__ = ["OLDEST_MAJOR", "Programs", "Server", "database_url", "find_programs", "open_server", "remove"]
