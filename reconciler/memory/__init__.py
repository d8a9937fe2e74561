"""What is remembered of applies: the inventory, the history that proves it, the log, and where they are kept."""
