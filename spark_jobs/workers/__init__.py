# SPDX-License-Identifier: Apache-2.0
"""Prepare Spark's worker processes: how they start, their memory, the way of tasks to them."""
