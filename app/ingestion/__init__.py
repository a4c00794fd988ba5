"""From a source to a saved index."""
