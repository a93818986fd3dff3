"""The team's own tables, one with the same name as a table of Rowcall's."""

from sqlalchemy import BigInteger, Column, Identity, MetaData, Table, Text

metadata = MetaData()

# Runs of the team's machines, unrelated to Rowcall's.
job_runs = Table(
    "job_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("customer", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="ordered"),
)
