"""`make screenshots` writes docs/up.svg: what `rowcall up` shows on a terminal, drawn by running it."""
