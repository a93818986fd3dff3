"""The demo: rows to look at, a stand-in for the outside, and a run of each job.

`rowcall up` asks for it where an app has a module `demo` with a function `prepare`.
"""

from rowcall_example.demo.runs import prepare

__all__ = ["prepare"]
