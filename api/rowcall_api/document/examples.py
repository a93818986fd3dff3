"""Examples of responses: real answers, which `make docs` records in examples.json (see tests/reference/examples.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("examples.json")

# The name of an operation -> the status of its success -> the body.
EXAMPLES: dict[str, dict[str, Any]] = json.loads(FILE.read_text())


def add_examples(name: str, responses: dict[Any, Any]) -> None:
    """Add the examples of an operation to the descriptions of its responses."""
    for status, body in EXAMPLES.get(name, {}).items():
        for content in responses[int(status)]["content"].values():
            content["example"] = body
