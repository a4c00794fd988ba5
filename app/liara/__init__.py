"""What we know about Liara itself."""
