"""The parts of the documentation that `python -m docs` generates from the code."""
