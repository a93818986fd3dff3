"""The schema: its revision, and in `tables` the live tables, which only migrations and their tests load."""

from rowcall.schema.revision import (
    REVISION,
    SCHEMA_ERRORS,
    Schema,
    check_revision,
    mismatch,
    mismatch_behind,
    schema_of,
)

__all__ = ["REVISION", "SCHEMA_ERRORS", "Schema", "check_revision", "mismatch", "mismatch_behind", "schema_of"]
