# SPDX-License-Identifier: Apache-2.0
"""Read Kafka for the planner and the sensors, and resolve connections into plain options."""
