"""Fuzzing, by hand and for as long as one likes."""
