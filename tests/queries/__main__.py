"""`make docs`: print docs/queries.sql."""

from __future__ import annotations

import sys

from tests.queries.page import page

if __name__ == "__main__":
    sys.stdout.write(page())
