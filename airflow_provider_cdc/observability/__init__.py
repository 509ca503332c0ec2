# SPDX-License-Identifier: Apache-2.0
"""Report what a pipeline does: metrics, history of its progress, lineage."""
