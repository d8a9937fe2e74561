"""What writes the parts of the documentation that come from the code; `python -m docs` does."""
