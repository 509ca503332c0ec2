"""Bytes to changes: one module per wire format behind one contract."""
