"""`reconciler show`."""
