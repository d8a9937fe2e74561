"""A declarative configuration reconciler for a source-code hosting service."""

__version__ = "0.1.0"
