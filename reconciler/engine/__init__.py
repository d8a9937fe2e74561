"""The engine: it makes a plan from the manifests and the service, and applies it.

`plan` makes the plan, with a reader that cannot write. `compare` turns desired and live state into changes and
findings; it is pure. `apply` carries out the changes.
"""
