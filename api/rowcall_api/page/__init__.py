"""The operator's page at /admin: HTML from the functions that the API's routes call, with the rights of an API key."""
