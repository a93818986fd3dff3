"""Rowcall's speed compared with bare SQL on the same tables, in the same run: `make bench`.

Machines differ and are shared, so only the ratios mean something; every raw run is printed beside them.
"""
