"""The outside, for tests: real servers on loopback, which keep what they were sent and misbehave on command."""
