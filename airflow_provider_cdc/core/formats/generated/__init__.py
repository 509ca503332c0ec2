"""Modules that ``make proto`` generates from ``proto/*.proto``; never edited by hand."""
