"""Hooks for schemathesis: what it checks besides its own checks."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

from rowcall_api.http.errors import SOME_FIELDS

# JSON Schema cannot express these: a value from an earlier response, fields that belong together, days that form a
# week. The document has the pattern of ETags, but schemathesis also sends a 0 there, in its coverage phase.
UNTOLD = {"cursor", "reference", "date_range", "If-Match", "If-None-Match"}

# The id of the key that all requests have, and that of one that they may change.
OWN_KEY, SPARE_KEY = (os.environ.get(name) for name in ("OWN_KEY", "SPARE_KEY"))

# Nor these, in any field: the characters of a text, whether it is JSON, that 1.0 was not written as an integer, and
# that `fields` limits `include`.
NO_VALUE = (
    "cannot be stored",
    "which is not a character",
    "is not JSON",
    "must be a JSON object",
    "Not a valid integer",
    "names all fields of the response",
)

# If the schema of one of these refuses a value, the answer also has what the core refuses, such as an unknown type.
WITH_THE_CORE = {
    "/v1/runs",
    "/v1/runs/batch",
    "/v1/runs/{run_id}/clone",
    "/v1/operations",
    "/v1/operations/preview",
}


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case[Any], __: dict[str, Any]) -> None:
    """Let no request rotate or revoke the key that sends the requests; lists show its id.  Let none wait for long."""
    wait = (case.query or {}).get("wait", "60" if case.path == "/v1/events" else "0")
    if str(wait).isdecimal() and int(wait) > 1:
        case.query = {**(case.query or {}), "wait": 1}
    if str((case.path_parameters or {}).get("key_id")) == OWN_KEY:
        case.path_parameters["key_id"] = SPARE_KEY


@schemathesis.check
def what_fits_the_schema_is_not_refused_by_it(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """Assert that a request which matches the schema is refused only by other rules, whose detail says which."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 422:
        return
    refused = response.json()
    if refused["detail"] == SOME_FIELDS:
        told = [error["detail"] for error in refused["errors"] if not UNTOLD & {*error["pointer"].split("/")}]
        cannot_be_told = [any(words in why for words in NO_VALUE) for why in told]
        enough = any if case.method == "POST" and case.path in WITH_THE_CORE else all
        assert not told or enough(cannot_be_told), response.text
