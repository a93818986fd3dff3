"""What a consumer needs before it can perform a run: the app's job types and handlers, and a database that fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rowcall.base import database, settings
from rowcall.base.errors import DeclarationError
from rowcall.base.logs import LogEvent, log
from rowcall.base.outages import can_be_tried_again
from rowcall.base.settings import Settings
from rowcall.job_types import Catalogue, catalogue
from rowcall.local_postgres.url import database_url
from rowcall.schema import check_revision
from rowcall_worker.handlers import Handler, load_handlers
from rowcall_worker.runtime.connection import CONNECTION_ERRORS


class Declared(NamedTuple):
    """The settings of this process, and what its app declares."""

    settings: Settings
    types: Catalogue
    handlers: Mapping[str, Handler]


def declared() -> Declared:
    """Return what the app declares; raise if there is no app, or if it is wrong."""
    chosen = settings.read()
    if chosen.app is None:
        raise DeclarationError("ROWCALL_APP is not set: set it to the package whose job types this consumer performs")
    types = catalogue()
    return Declared(chosen, types, load_handlers(types, chosen.app))


def check_database(chosen: Settings) -> None:
    """Raise if no database is set, or if its schema does not fit this code; an unreachable one may come back."""
    with database_url(chosen) as url:
        try:
            with database.internal_transaction(url) as connection:
                check_revision(connection)
        except CONNECTION_ERRORS as error:
            if not can_be_tried_again(error):
                raise
            log().warning(LogEvent.DATABASE_LOST, error=str(error).strip())
