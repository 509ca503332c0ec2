# SPDX-License-Identifier: Apache-2.0
"""Let a platform run a batch: start its run, look at it, cancel it."""
