"""What is published: the packages, the image, the hooks."""
