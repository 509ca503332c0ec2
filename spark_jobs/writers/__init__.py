"""Tables out: the task writer (delta-rs) and the Spark writer behind one contract."""
