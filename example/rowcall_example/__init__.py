"""A small SaaS on Rowcall, written the way a team writes its own app: see example/README.md."""
