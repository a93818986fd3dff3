"""The queue as section 4 of its contract says it behaves, in plain Python, and the moves that are made on both.

`world` knows no SQL; `moves` makes one move on the real queue and tells what the world expects of it; `hands` has the
connections.  test_model.py plays them against each other.
"""
