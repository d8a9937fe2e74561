"""What goes wrong in the sandbox: the tree is its own, and shares no class with the client it is there to check."""


class SandboxError(Exception):
    """The root: whatever the sandbox raises on purpose."""


class StateError(SandboxError):
    """A state that cannot be loaded; the text names the place in it, as `projects[3].milestones[0].title`."""


class FaultError(SandboxError):
    """A fault or rate limit that cannot be understood; the text quotes it."""
