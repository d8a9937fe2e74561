"""What the demo starts from: a state for the sandbox, and manifests."""

from pathlib import Path

STATE = Path(__file__).with_name("state.yaml")
MANIFESTS = Path(__file__).with_name("manifests")
