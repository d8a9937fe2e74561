"""Plans and reports on disk: their formats, their checksums, and how parts of one run are merged."""
