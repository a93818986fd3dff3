"""The SQL of version 0001, frozen like the versions; it has a separate folder because it is long."""
