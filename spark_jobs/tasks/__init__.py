"""What one task does: plain functions of documents, no pyspark."""
