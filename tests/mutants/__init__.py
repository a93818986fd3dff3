"""Remove one guard of the queue at a time: a test must fail each time.

`listed` has the guards, `copies` runs the tests on a copy of Rowcall in which one guard is missing, and `make mutants`
prints which test failed.
"""
