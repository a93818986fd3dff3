"""/v1/files: the files that handlers have written, to download."""

from __future__ import annotations

from typing import Any

import flask
from werkzeug.wsgi import wrap_file

from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.effects import files
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.http.guard import BYTES, returns
from rowcall_api.schemas.lists.files import FileListSchema, FileSchema, FilesQuery
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint("files", __name__, url_prefix="/v1/files", description="Files that handlers have written.")


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(FilesQuery, location="query")
@blueprint.response(200, FileListSchema)
@needs("read")
def list_files(query: dict[str, Any]) -> dict[str, Any]:
    """List the files that handlers have written, the newest first."""
    with transaction() as connection:
        page = files.page_of_files(connection, **query)
    return {"items": page.effects, "next": page.next}


@blueprint.get("/<int:file_id>")
@blueprint.response(200, FileSchema)
@needs("read")
def show_file(file_id: int) -> Row:
    """Show one file, without its content."""
    with transaction() as connection:
        return files.get_file(connection, file_id)


@blueprint.get("/<int:file_id>/content")
@blueprint.response(
    200, {"type": "string", "format": "binary"}, content_type=BYTES, headers={"Content-Disposition": "Attachment"}
)
@returns(BYTES)
@needs("read")
def download_file(file_id: int) -> flask.Response:
    """Download a file.

    The API reads the file from the folder ROWCALL_FILES, so its machine must share that folder with the workers. A
    file that has changed since its handler wrote it is refused with 409.
    """
    with transaction() as connection:
        file = files.get_file(connection, file_id)
    opened = files.open_file(file, settings.read().file_folder)
    response = flask.Response(wrap_file(flask.request.environ, opened.file), mimetype=BYTES, direct_passthrough=True)
    response.call_on_close(opened.file.close)
    response.content_length = opened.size
    response.headers.set("Content-Disposition", "attachment", filename=opened.name)
    return response
