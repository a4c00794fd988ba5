"""How a request comes in and an answer goes out."""
