"""The service over HTTP: nothing else imports httpx. Begin with `Client`.

A `Client` asks `limiter` when a request may be sent, sends it on a `connection`, and turns the response into a value or
an error (`responses`). `policy` decides about retries, and `pagination` reads lists.
"""

from reconciler.service.client import Client
from reconciler.service.policy import Clock, Policy, Rate
from reconciler.service.traffic import Traffic, Wait

__all__ = ["Client", "Clock", "Policy", "Rate", "Traffic", "Wait"]
