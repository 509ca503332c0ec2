"""Real captures replayed and compared with the database's own content."""
