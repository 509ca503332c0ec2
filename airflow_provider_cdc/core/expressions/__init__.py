# SPDX-License-Identifier: Apache-2.0
"""Evaluate a subset of SQL on Arrow columns: conditions that rows must meet, and columns that are computed.

``syntax`` reads a text to ``nodes``, ``typing`` checks their types and chooses kernels, ``expression`` runs them.
``functions`` lists the functions; the other modules hold kernels. docs/reference/expressions.md is the reference.
"""
