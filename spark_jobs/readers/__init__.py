"""Kafka in: the task reader (librdkafka) and the Spark reader behind one contract."""
