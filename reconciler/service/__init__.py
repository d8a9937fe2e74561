"""The hosting service over HTTP: the only importer of httpx."""

from reconciler.service.client import Client, Traffic

__all__ = ["Client", "Traffic"]
