"""Kafka Connect's JSON as Debezium and dtle write it."""
