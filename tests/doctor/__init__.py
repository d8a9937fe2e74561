"""What the doctor finds, and which requests it makes for it."""
