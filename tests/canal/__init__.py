# SPDX-License-Identifier: Apache-2.0
"""Canal's own protocol: recorded sessions, faults of servers and clients, tables of a source without Kafka."""
