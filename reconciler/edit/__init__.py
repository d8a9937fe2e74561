"""Changes of manifests: what `accept`, `export` and `init` write, and where."""
