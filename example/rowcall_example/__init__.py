"""A small SaaS on Rowcall, written as a team writes its own app: see example/README.md."""
