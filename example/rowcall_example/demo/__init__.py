"""The demo: rows to look at, stand-ins for the external services, and a run of each job.

`rowcall up` runs it for an app that has a module `demo` with a function `prepare`.
"""

from rowcall_example.demo.runs import prepare

__all__ = ["prepare"]
