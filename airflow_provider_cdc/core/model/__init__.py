"""What things are: names, positions, changes, schemas, encodings."""
