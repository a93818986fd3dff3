"""What /openapi.json says about the whole interface, as settings of flask-smorest."""

from __future__ import annotations

from typing import Any

from rowcall import __version__

DESCRIPTION = """
Enqueue runs, change them, and see their results.

Every request needs a key, sent as `Authorization: Bearer rc_...`; `rowcall keys create NAME --scope SCOPE` creates one.
Times are in RFC 3339 format with an offset. Every error is a problem document (RFC 9457) with a stable `type`.
A request that takes an `Idempotency-Key` can safely be repeated with the same key: the work is done once.
"""

CONFIG: dict[str, Any] = {
    "API_TITLE": "Rowcall",
    "API_VERSION": __version__,
    "OPENAPI_VERSION": "3.1.0",
    "OPENAPI_URL_PREFIX": "/",
    "OPENAPI_JSON_PATH": "openapi.json",
    "API_SPEC_OPTIONS": {
        "info": {
            "summary": "Scheduled background jobs on nothing but PostgreSQL",
            "description": DESCRIPTION.strip(),
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        # The server that this document was loaded from.
        "servers": [{"url": "/"}],
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key such as rc_1a2b3c4d_..., with scopes.",
                }
            }
        },
    },
}
