"""Python without the example: on PYTHONPATH, where Python looks for this file at its start."""

import sys

# What importlib takes for a package that is not installed.
sys.modules["rowcall_example"] = None  # type: ignore[assignment]
