"""What a git repository adds to a run: the manifests of another revision, and notes on merge requests."""
