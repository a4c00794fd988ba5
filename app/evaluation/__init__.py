"""Measures retrieval with judged questions: ours, a part left out, or the predecessor's method."""
