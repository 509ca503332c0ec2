# SPDX-License-Identifier: Apache-2.0
"""Read Kafka: the task reader (librdkafka, in a task) and the Spark reader (Spark's own source)."""
