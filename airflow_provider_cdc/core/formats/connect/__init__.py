# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's JSON as Debezium and dtle write it."""
