"""Live state as manifests: read, written as a manifest declares it, and merged into the documents of a folder."""
