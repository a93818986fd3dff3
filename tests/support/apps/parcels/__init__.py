"""An app whose runs are handed over to Celery."""
