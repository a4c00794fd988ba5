"""The document sets that this process serves."""
