"""The app whose handler does one effect, which does nothing outside."""
