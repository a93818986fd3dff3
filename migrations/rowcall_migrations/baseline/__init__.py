"""The SQL of version 0001, frozen like the versions; it has its own folder because it is long."""
