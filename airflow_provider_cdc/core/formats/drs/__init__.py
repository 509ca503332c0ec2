"""Huawei DRS's formats: JSON, JSON-C and Avro."""
