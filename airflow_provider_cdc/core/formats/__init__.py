# SPDX-License-Identifier: Apache-2.0
"""Bytes to changes: one module per wire format behind one contract."""
