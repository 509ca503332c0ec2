# SPDX-License-Identifier: Apache-2.0
"""Faults of everything around a pipeline, through the command line: after them no row is lost and none is doubled."""
