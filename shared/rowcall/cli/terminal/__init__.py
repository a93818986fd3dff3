"""Output to a terminal, and questions to the person there."""
