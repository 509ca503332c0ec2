# SPDX-License-Identifier: Apache-2.0
"""Describe what differs between Debezium's connectors, a module for each family of them."""
