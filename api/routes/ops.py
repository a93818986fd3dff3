"""For the machines around Rowcall: is the process alive, and can it serve?"""

from __future__ import annotations

import flask

from api.database import transaction
from shared.schema import check_revision

blueprint = flask.Blueprint("ops", __name__)


@blueprint.get("/healthz")
def alive() -> dict[str, str]:
    """The process answers; nothing else is asked, so that a database outage restarts no healthy process."""
    return {"status": "alive"}


@blueprint.get("/readyz")
def ready() -> dict[str, str]:
    """The database is there and has this code's schema; otherwise a problem says what is wrong."""
    with transaction() as connection:
        check_revision(connection)
    return {"status": "ready"}
