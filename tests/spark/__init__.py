# SPDX-License-Identifier: Apache-2.0
"""Test what needs a real Spark session."""
