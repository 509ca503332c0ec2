"""What needs a real Spark session."""
