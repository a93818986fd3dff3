"""The queue with one guard taken away, again and again: a test must fail each time.

`listed` says which guards, `copies` lets the tests loose on a copy of Rowcall in which one is missing, and `make
mutants` prints who noticed.
"""
