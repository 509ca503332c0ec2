# SPDX-License-Identifier: Apache-2.0
"""Run one task: plain functions without Spark."""
