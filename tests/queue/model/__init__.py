"""The queue as section 4 of its contract says it behaves, in plain Python, and the moves that are made on both.

`world` knows no SQL.  A move of `owner`, `worker`, `operator` or `anyone` is made on the real queue, through one of the
`connections`, and says what the world expects of it.  tests/queue/database/test_model.py compares the two.
"""
