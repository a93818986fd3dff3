"""Failures: failed attempts, counted by minute, job type and error."""
