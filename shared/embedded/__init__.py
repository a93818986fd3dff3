"""A PostgreSQL of Rowcall's own, below ROWCALL_HOME, for as long as any process uses it."""

from shared.embedded.programs import Programs, find_programs
from shared.embedded.server import Server, open_server, remove

__all__ = ["Programs", "Server", "find_programs", "open_server", "remove"]
