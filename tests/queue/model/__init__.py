"""The queue's rules in plain Python, and moves that are made both on this model and on the real queue.

`world` contains no SQL.  A move of `owner`, `worker`, `operator` or `anyone` is made on the real queue through one of
the
`connections`, and says what the model expects from it.  test_model.py compares the two.
"""
