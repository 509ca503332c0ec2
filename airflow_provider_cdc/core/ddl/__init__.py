"""What a DDL statement means: text to statements, statements to a timeline of schema changes."""
