"""Fingerprints: tell a repeated request from one with other content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

# Created once, because json.dumps creates one for every value.  Its text is part of stored fingerprints.
FINGERPRINTED = json.JSONEncoder(sort_keys=True, default=datetime.isoformat)


def fingerprint_of(subject: str, content: Any, options: Mapping[str, Any]) -> str:
    """Return the fingerprint of a request's content: the type, the payload as sent, and the options."""
    text = FINGERPRINTED.encode([subject, content, options])
    return hashlib.sha256(text.encode()).hexdigest()


def sent_of(stored: Any, sent: Any) -> Any:
    """Return the stored values of the fields that were sent.

    A repeated request then has the same fingerprint, even if the schema has gained a field with a default.
    """
    if stored == sent:
        return stored
    if isinstance(stored, Mapping) and isinstance(sent, Mapping):
        return {name: sent_of(stored[name], value) for name, value in sent.items() if name in stored}
    if isinstance(stored, list) and isinstance(sent, Sequence) and len(stored) == len(sent):
        return [sent_of(*pair) for pair in zip(stored, sent, strict=True)]
    return stored
