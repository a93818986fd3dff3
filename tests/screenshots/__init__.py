"""`make screenshots` writes docs/images/: what `rowcall up` shows on a terminal, and the operator's page in a browser."""
