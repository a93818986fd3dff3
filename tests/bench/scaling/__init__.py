"""What the model of tests/simulate needs to know: costs of single statements, and what real workers use."""
