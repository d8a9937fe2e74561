"""Live state as manifests: read, said as a manifest would, and written into a folder whose manifests stay as they were.

Beside the manifest reader, this is the only room that speaks YAML; it writes it with ruamel.
"""
