# SPDX-License-Identifier: Apache-2.0
"""Run one batch: an engine reads a job document and writes a result document."""
