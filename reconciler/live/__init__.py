"""Live state, read from the service and never written."""
