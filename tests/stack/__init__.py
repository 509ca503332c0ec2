"""The real services that tests, demo and bench run against."""
