"""Schemas for generated files."""

from __future__ import annotations

from marshmallow import fields, validate

from rowcall.base.database import LARGEST_ID
from rowcall_api.schemas.answers import AnswerSchema, page_items
from rowcall_api.schemas.lists.chosen import chosen_fields
from rowcall_api.schemas.lists.pages import FilteredPageQuery


class FileSchema(AnswerSchema):
    """A file that a handler has written; also an effect of the kind `generated_files`, with the same id."""

    id = fields.Integer()
    type = fields.String(metadata={"description": "The type of the file, chosen by its handler, such as sales_report."})
    date = fields.Date(metadata={"description": "The date that the file is about."})
    key = fields.String(metadata={"description": "Distinguishes files of the same type and date."})
    path = fields.String(
        allow_none=True,
        metadata={"description": "Below ROWCALL_FILES; null if it was erased or its handler did not record it."},
    )
    size_bytes = fields.Integer(allow_none=True)
    sha256 = fields.String(allow_none=True)
    run_id = fields.Integer(metadata={"description": "The last run that wrote it."})
    written_at = fields.AwareDateTime()


class FilesQuery(FilteredPageQuery):
    """Whose files, the page size and the cursor."""

    run_id = fields.Integer(
        load_default=None,
        validate=validate.Range(1, LARGEST_ID),
        metadata={"description": "Only files that this run was the last to write."},
    )
    chosen_fields = chosen_fields(FileSchema)


class FileListSchema(AnswerSchema):
    """A page of files, the newest first."""

    items = page_items(FileSchema)
    next = fields.String(allow_none=True, metadata={"description": "The cursor of the next page."})
