"""Changes and timeline to what one table must become."""
