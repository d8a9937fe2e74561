"""What the service holds: read completely, and never written."""
