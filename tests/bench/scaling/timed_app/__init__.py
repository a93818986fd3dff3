"""The app whose handler takes as long as the payload says."""
