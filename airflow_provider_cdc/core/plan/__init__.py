"""What to read next, and how far the source is known to be; pure functions, no I/O."""
