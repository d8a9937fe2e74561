"""The operating system: child processes, files written whole or line by line, text for a terminal."""
