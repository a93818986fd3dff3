"""Hooks for schemathesis: what it is to hold against, beyond its own checks."""

from __future__ import annotations

from typing import Any

import schemathesis

# What a schema refuses, as opposed to a rule with a problem of its own: a key that another content has, say.
REFUSED_BY_THE_SCHEMA = "urn:rowcall:problem:unprocessable-entity"

# What JSON Schema cannot tell of a field: what an earlier answer said, what goes with what, which days are a week.
# The document has the pattern of ETags, but schemathesis also sends a 0 there, in its coverage phase.
UNTOLD = {"cursor", "reference", "date_range", "If-Match", "If-None-Match"}

# Nor of any value: which characters a text has, whether it is JSON, and that 1.0 was not written as an integer.
NO_VALUE = (
    "cannot be stored",
    "which is not a character",
    "is not JSON",
    "must be a JSON object",
    "Not a valid integer",
)


@schemathesis.check
def what_fits_the_schema_is_not_refused_by_it(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """A request that the document allows may break a rule, and then a problem of its own says which."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 422:
        return
    refused = response.json()
    if refused["type"] == REFUSED_BY_THE_SCHEMA:
        told = {name: str(why) for name, why in refused["errors"].items() if name not in UNTOLD}
        assert all(any(words in why for words in NO_VALUE) for why in told.values()), response.text
