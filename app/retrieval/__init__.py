"""From a query to grounded passages."""
