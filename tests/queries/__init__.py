"""`make docs` writes docs/queries.sql: every statement of the queue, the effects and the definitions, for psql.

`statements` finds them in the code, `samples` gives each parameter a value, and `page` writes the file.
"""
