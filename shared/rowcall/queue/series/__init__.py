"""Series: the ends of attempts, their waiting and run times, by minute, for charts."""
