"""The SQL of version 0001, frozen like the versions.  It is in a separate folder because it is long."""
