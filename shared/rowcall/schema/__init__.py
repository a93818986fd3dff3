"""The schema: its revision, and in `tables` the live tables, which only migrations and their tests load."""

from rowcall.schema.revision import REVISION, check_revision, revision_of

__all__ = ["REVISION", "check_revision", "revision_of"]
