# SPDX-License-Identifier: Apache-2.0
"""Build the schema versions of every table from schema changes in source order."""
