"""The engine: from manifests and the service to a plan, and from a plan to what became of it.

`plan` is the way from the manifests to a plan, on which nothing can write. `compare` turns what is declared and what
is live into changes and findings; it is pure. `apply` carries them out.
"""
