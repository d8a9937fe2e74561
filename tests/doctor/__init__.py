"""The doctor's findings and its requests."""
