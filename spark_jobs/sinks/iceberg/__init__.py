# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of a catalog: written by tasks through pyiceberg."""
