"""The part of git in a run: the manifests of another revision, and notes on merge requests."""
