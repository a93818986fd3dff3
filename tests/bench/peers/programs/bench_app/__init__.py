"""The app whose handler does nothing."""
