# SPDX-License-Identifier: Apache-2.0
"""Test what the product does at a PostgreSQL source, on a real server."""
