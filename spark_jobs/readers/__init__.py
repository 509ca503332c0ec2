# SPDX-License-Identifier: Apache-2.0
"""Read the log: Kafka in a task (librdkafka) or by Spark's own source, segments of packets, topics in files."""
