"""An app whose handlers are tested with rowcall_worker.testing, as its authors would do it."""
