"""The hosting service over HTTP: the only importer of httpx."""

from reconciler.service.client import Client
from reconciler.service.policy import Clock, Policy, Rate
from reconciler.service.traffic import Traffic, Wait

__all__ = ["Client", "Clock", "Policy", "Rate", "Traffic", "Wait"]
