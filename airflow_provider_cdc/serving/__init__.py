# SPDX-License-Identifier: Apache-2.0
"""Run batches of many pipelines again and again, each in a fork of a process that has imported everything."""
