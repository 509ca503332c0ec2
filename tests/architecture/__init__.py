"""The house's rules, checked on its files rather than on its behaviour."""
