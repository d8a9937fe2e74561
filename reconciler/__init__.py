"""A declarative configuration reconciler for a source-code hosting service."""

__version__ = "0.1.0"

CONFIGURATION = "reconciler.yaml"
"""The file in the working directory that holds settings of the command line; it is never a manifest."""
