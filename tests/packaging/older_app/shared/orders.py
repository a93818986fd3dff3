"""The team's own table, whose name Rowcall might have wanted too."""

from sqlalchemy import BigInteger, Column, Identity, MetaData, Table, Text

metadata = MetaData()

# Runs of the team's machines, which have nothing to do with Rowcall's.
job_runs = Table(
    "job_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("customer", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="ordered"),
)
