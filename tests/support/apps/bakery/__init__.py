"""An app whose handlers are tested with rowcall_worker.testing, the way its authors would do it."""
