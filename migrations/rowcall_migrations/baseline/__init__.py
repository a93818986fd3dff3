"""The SQL of version 0001: as frozen as the versions are, and in rooms of its own because it is long."""
