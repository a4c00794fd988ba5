"""Text to vectors, behind one Encoder protocol."""
