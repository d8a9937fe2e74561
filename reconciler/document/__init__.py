"""Plans and reports as documents: a head, the targets that were looked at, and a flat list of items."""
