"""External services for tests: real servers on loopback, which record what they receive and fail on request."""
