"""How fast Rowcall is, beside bare SQL on the same tables in the same run: `make bench`.

Machines differ and are shared, so only the ratios say anything; every raw run is kept beside them.
"""
