# SPDX-License-Identifier: Apache-2.0
"""Compute the next range to read, the source's progress and the lag; pure functions without I/O."""
