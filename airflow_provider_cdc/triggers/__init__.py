"""Triggers of deferred sensors."""
