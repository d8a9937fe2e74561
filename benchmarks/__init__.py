"""How fast it is, measured: `python -m benchmarks` from a checkout; see README.md beside this."""
