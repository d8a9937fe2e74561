"""The errors of the sandbox: a tree of its own, which shares no class with the client that the sandbox checks."""


class SandboxError(Exception):
    """The root of every error that the sandbox raises on purpose."""


class StateError(SandboxError):
    """A state that cannot be loaded; the text names the place in it, as `projects[3].milestones[0].title`."""


class FaultError(SandboxError):
    """A fault or rate limit that cannot be understood; the text quotes it."""
