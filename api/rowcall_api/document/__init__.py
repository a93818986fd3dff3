"""What generated clients need from /openapi.json: names of operations, formats of numbers, and examples."""
