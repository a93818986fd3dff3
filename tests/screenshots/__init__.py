"""`make screenshots` writes docs/images/: the terminal of `rowcall up`, and the operator's page in a browser."""
