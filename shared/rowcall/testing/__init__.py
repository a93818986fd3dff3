"""The database part of the test kit: it creates test databases and moves time.

Apps use the plugin `rowcall_worker.testing`.
"""
