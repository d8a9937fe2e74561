"""What the operating system demands care for: child processes, files written whole, text for a terminal."""
