# SPDX-License-Identifier: Apache-2.0
"""The real services that tests, demo and bench run against."""
