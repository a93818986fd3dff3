"""Hide the example from Python, which imports this file at its start if its folder is on PYTHONPATH."""

import sys

# importlib takes this for a package that is not installed.
sys.modules["rowcall_example"] = None  # type: ignore[assignment]
