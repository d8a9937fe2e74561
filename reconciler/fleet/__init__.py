"""What a run finds out before it plans: from manifests and the service to a plan. Nothing here can write."""
