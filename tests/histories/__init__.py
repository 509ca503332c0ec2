"""Random source histories, sent as Debezium sends them and applied in random batches, against a plain Python model."""
