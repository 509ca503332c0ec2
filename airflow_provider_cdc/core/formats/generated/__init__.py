# SPDX-License-Identifier: Apache-2.0
"""Modules that ``make proto`` generates from ``proto/*.proto``; never edited by hand."""
