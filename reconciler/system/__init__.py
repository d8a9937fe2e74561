"""The operating system: child processes, files written whole or line by line, text for a terminal.

Nothing here knows the domain. Begin with `files.save`, `processes.git` and `terminal.escaped`.
"""
